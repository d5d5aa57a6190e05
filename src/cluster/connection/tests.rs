use super::*;

#[tokio::test]
async fn a_kubeconfig_without_a_cluster_is_not_replaced_by_what_a_pod_has() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("config");
    for text in [
        "",
        "\n",
        "# later\n",
        "apiVersion: v1\nkind: Config\n",
        "contexts: []\ncurrent-context: ''\n",
    ] {
        std::fs::write(&path, text).expect("a file");
        let options = ConnectionOptions {
            kubeconfig: Some(path.clone()),
            ..ConnectionOptions::default()
        };
        let error = options.log_in_and_set_up().err().expect(text);
        let expected = format!("kubeconfig {}: it has no cluster and no context", path.display());
        assert_eq!(error.to_string(), expected, "{text:?}");
        assert_eq!(error.kind, ErrorKind::Usage);
        let with_server = ConnectionOptions {
            server: Some("https://one".to_owned()),
            ..options
        };
        assert!(with_server.log_in_and_set_up().is_ok(), "{text:?}");
    }
}

#[test]
fn addresses_hold_no_password() {
    let address = |server: &str| {
        let config = Config::new(parse_server(server).expect("an address"));
        Endpoint::from_config(&config).address
    };
    assert_eq!(
        address("https://me:hush@example.com:6443/"),
        "https://example.com:6443"
    );
    assert_eq!(address("example.com/k8s/"), "https://example.com/k8s");
}
