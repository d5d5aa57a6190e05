use super::*;

#[test]
fn arguments_are_read_as_kubectl_reads_them() {
    let discovery = healthy_sample();
    for (text, expected) in [
        ("configmaps", "v1 configmaps"),
        ("configmap", "v1 configmaps"),
        ("cm", "v1 configmaps"),
        ("ConfigMap", "v1 configmaps"),
        ("CONFIGMAPS", "v1 configmaps"),
        ("configmaps.", "v1 configmaps"),
        ("configmaps.v1.", "v1 configmaps"),
        ("configmaps.v1", "v1 configmaps"),
        ("cm.v1", "v1 configmaps"),
        ("configmaps.v2", "absent"),
        ("configmaps.v1beta1", "absent"),
        ("hpa.v1", "autoscaling/v1 horizontalpodautoscalers"),
        ("applysets.company.com", "company.com/v1 applysets"),
        ("applysets.v1.company.com", "company.com/v1 applysets"),
        ("applysets.v1beta1.company.com", "company.com/v1beta1 applysets"),
        ("applysets.v2.company.com", "absent"),
        ("applyset.company.com", "company.com/v1 applysets"),
        ("ApplySet.company.com", "company.com/v1 applysets"),
        ("aps", "company.com/v1 applysets"),
        ("applysets.company", "company.com/v1 applysets"),
        ("deploy.apps", "apps/v1 deployments"),
        ("ingresses.networking", "networking.k8s.io/v1 ingresses"),
        ("ing", "networking.k8s.io/v1 ingresses"),
        ("hpa", "autoscaling/v2 horizontalpodautoscalers"),
        ("hpa.v1.autoscaling", "autoscaling/v1 horizontalpodautoscalers"),
        ("events", "v1 events"),
        ("events.events.k8s.io", "events.k8s.io/v1 events"),
        ("ev.events", "events.k8s.io/v1 events"),
        ("configmaps.apps", "absent"),
        ("widgets", "absent"),
        ("pods/status", "absent"),
        ("", "absent"),
        (".", "absent"),
        ("..", "absent"),
    ] {
        assert_eq!(summary(discovery.find_by_argument(text)), expected, "{text:?}");
    }
}

#[test]
fn arguments_that_several_resources_fit() {
    let mut boxes = served("a.example.com", "v1", "Crate", "crates", &["list"]);
    boxes.short_names = vec!["box".to_owned()];
    let discovery = Discovery::from_parts(
        vec![
            boxes,
            served("b.example.com", "v1", "Box", "boxes", &["list"]),
            served("store", "v1", "Shelf", "shelves", &["list"]),
            served("store.example.com", "v1", "Shelf", "shelves", &["list"]),
        ],
        Vec::new(),
    );
    for (text, expected) in [
        // A full name wins over a short name that comes earlier.
        ("box", "b.example.com/v1 boxes"),
        ("box.a.example.com", "a.example.com/v1 crates"),
        ("shelf", "store/v1 shelves"),
        ("shelf.store", "store/v1 shelves"),
        ("shelf.store.example", "store.example.com/v1 shelves"),
    ] {
        assert_eq!(summary(discovery.find_by_argument(text)), expected, "{text:?}");
    }
}

#[test]
fn arguments_do_not_slip_from_a_failed_group_into_another() {
    let discovery = Discovery::from_parts(
        vec![
            served("company.com", "v1", "ApplySet", "applysets", &["list"]),
            served("other.com", "v1", "Secret", "secrets", &["list"]),
        ],
        vec![
            failed("", "v1"),
            failed("company", "v1"),
            failed("metrics.k8s.io", "v1beta1"),
        ],
    );
    for (text, expected) in [
        ("applysets.company.com", "company.com/v1 applysets"),
        ("applysets.company", "failed company/v1"),
        ("applysets.v1.company", "failed company/v1"),
        ("secrets", "failed /v1"),
        ("secrets.v1", "failed /v1"),
        ("secrets.other.com", "other.com/v1 secrets"),
        ("pods.metrics", "failed metrics.k8s.io/v1beta1"),
        ("things.company.com", "absent"),
    ] {
        assert_eq!(summary(discovery.find_by_argument(text)), expected, "{text:?}");
    }
    assert_eq!(summary(sample().find_by_argument("cm")), "v1 configmaps");
    assert_eq!(
        summary(sample().find_by_argument("nodemetrics")),
        "failed metrics.k8s.io/v1beta1"
    );
}
