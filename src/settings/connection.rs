//! Reads the flags about the connection.

use super::waiting::parse_duration;
use crate::cli::ConnectionFlags;
use crate::cluster::connection::ConnectionOptions;
use crate::error::Error;
use crate::model::text::shell_word;

/// Returns the flags that choose the cluster and the user as they were typed, for commands in hints. Flags with a
/// secret (`--token`) or with a file of one (`--client-key`) are left out.
pub fn format_connection_flags_for_hints(flags: &ConnectionFlags) -> Vec<String> {
    let options = &flags.options;
    let kubeconfig = options.kubeconfig.as_ref().map(|path| path.to_string_lossy());
    let text_flags = [
        ("context", &options.context),
        ("cluster", &options.cluster),
        ("user", &options.user),
        ("server", &options.server),
        ("as", &options.impersonate),
    ];
    [("kubeconfig", kubeconfig)]
        .into_iter()
        .chain(text_flags.map(|(flag, value)| (flag, value.as_deref().map(Into::into))))
        .filter_map(|(flag, value)| Some(format!("--{flag} {}", shell_word(&value?))))
        .collect()
}

/// Reads the flags about the connection.
pub fn read_connection(flags: &ConnectionFlags) -> Result<ConnectionOptions, Error> {
    Ok(ConnectionOptions {
        request_timeout: flags
            .request_timeout
            .as_deref()
            .map(|text| parse_duration("--request-timeout", text))
            .transpose()?,
        ..flags.options.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;

    #[test]
    fn what_chooses_cluster_and_user_is_repeated_and_no_secret() {
        let typed = |flags: &str| {
            let line = format!("kubectl-applyset export web {flags}");
            let typed = Cli::parse(line.split(' ').map(Into::into).collect()).expect("flags");
            format_connection_flags_for_hints(&typed.shared.connection).join(" ")
        };
        assert_eq!(typed("-n shop --token t --request-timeout 3s"), "");
        assert_eq!(
            typed("--as ann --context a;b --kubeconfig ~/other"),
            "--kubeconfig '~/other' --context 'a;b' --as ann"
        );
        assert_eq!(
            typed("-s https://a --cluster b --user c"),
            "--cluster b --user c --server https://a"
        );
    }
}
