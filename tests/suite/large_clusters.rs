//! What a run reads where there is much that is none of its business, and where what there is is
//! large.

use std::sync::Arc;

use http::Method;

use crate::support::{
    Proxy, Sent, Set, Verdict, Watch, cluster, config_map, eventually, fresh, identities, namespace,
    namespace_object,
};

/// Answers with small pages, as a large cluster does.
struct SmallPages(usize);

impl Watch for SmallPages {
    fn before(&self, _: &Sent, _: usize) -> Verdict {
        Verdict::Forward
    }

    fn page_size(&self) -> Option<usize> {
        Some(self.0)
    }
}

#[test]
fn many_pruned_namespaces_are_looked_into_and_no_others() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let names: Vec<String> = (0..4).map(|_| fresh("away")).collect();
    let places: Vec<_> = names.iter().map(|name| namespace_object(name)).collect();
    let inside = names.iter().map(|name| config_map(name, "inside", "1"));
    let all: Vec<_> = [kept.clone()]
        .into_iter()
        .chain(places.clone())
        .chain(inside)
        .collect();
    set.apply(&all);
    let stranger = config_map(&names[2], "stranger", "1");
    cluster().create(&stranger);
    let apply = |code: i32| {
        let proxy = Proxy::watched(Arc::new(SmallPages(2)));
        let run = set
            .apply_through(&proxy, std::slice::from_ref(&kept), &[])
            .expect(code);
        (run, proxy.sent())
    };

    let (run, sent) = apply(3);

    let [error] = &run.errors()[..] else {
        panic!("{}", run.stderr);
    };
    assert!(
        error.contains("1 object") && error.contains("stranger"),
        "{error}"
    );
    let is_look = |sent: &&Sent| sent.method == Method::GET && sent.path.contains("labelSelector=&");
    let config_maps: Vec<&str> = sent
        .iter()
        .filter(is_look)
        .map(|sent| sent.path.split_once('?').map_or("", |(path, _)| path))
        .filter(|path| path.ends_with("/configmaps"))
        .collect();
    let is_pruned = |path: &&str| names.iter().any(|name| path.contains(name.as_str()));
    assert!(
        config_maps.len() >= names.len() && config_maps.iter().all(is_pruned),
        "{config_maps:?}"
    );

    cluster().delete(&stranger);
    let (run, _) = apply(0);
    assert_eq!(run.results("pruned").len(), 8, "{}", run.stderr);
    eventually("the namespaces are gone", || {
        let mut places = places.iter();
        places.all(|place| cluster().live(place).is_none()).then_some(())
    });
    set.apply(std::slice::from_ref(&kept));
    set.assert_holds(&[kept]);
}

#[test]
fn members_in_many_namespaces_are_found_among_those_of_others() {
    let names: Vec<String> = (0..5).map(|_| namespace("many")).collect();
    let set = Set::secret(&names[0], "web");
    let members: Vec<_> = names.iter().map(|name| config_map(name, "member", "1")).collect();
    set.apply(&members);
    let run = set.apply(&members[1..]);
    assert_eq!(run.results("unchanged").len(), 4);
    assert_eq!(run.results("pruned"), identities([&members[0]]));
    set.assert_holds(&members[1..]);
}

#[test]
fn pages_of_large_objects_shrink() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let value = "x".repeat(600 << 10);
    let members: Vec<_> = (0..18)
        .map(|number| config_map(&home, &format!("large-{number}"), &value))
        .collect();
    set.apply(&members);
    let proxy = Proxy::watched(Arc::new(SmallPages(15)));
    let run = set.apply_through(&proxy, &members, &[]).expect(0);
    assert_eq!(run.results("unchanged").len(), members.len(), "{}", run.stderr);
    let sent = proxy.sent();
    let limit = |sent: &Sent| -> Option<usize> {
        let (_, rest) = sent.path.split_once("/configmaps?")?.1.split_once("limit=")?;
        rest.split('&').next()?.parse().ok()
    };
    let limits: Vec<usize> = sent.iter().filter_map(limit).collect();
    assert_eq!(limits[0], 500, "{limits:?}");
    assert!(limits[1] < 15, "{limits:?}");
}
