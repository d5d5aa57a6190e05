//! Finds the proxy for a server, in a setting of the kubeconfig or by environment variables.
//!
//! The rules for the variables are those of Go's `net/http` (`ProxyFromEnvironment`), and so kubectl's: `HTTPS_PROXY`
//! and `HTTP_PROXY` by the scheme of the target, `NO_PROXY` for exceptions, lower case if upper case
//! is unset, and never for this machine itself. Proxy URLs may hold passwords; only host and port
//! are shown.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;

/// A proxy with the scheme `http`, `https` or `socks5`.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    uri: Uri,
    setting_name: String,
}

/// An invalid proxy URL, or one of another scheme.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting_name}: not the URL of an http, https or socks5 proxy")]
pub struct InvalidProxy {
    /// The variable or the field of the kubeconfig.
    pub setting_name: String,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({}://…)", self.uri.scheme_str().unwrap_or_default())
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.uri.host().unwrap_or_default())?;
        if let Some(port) = self.uri.port() {
            write!(f, ":{port}")?;
        }
        write!(f, " of {}", self.setting_name)
    }
}

impl Proxy {
    /// Parses the URL of a proxy; without a scheme, it is an http proxy. `setting_name` is the variable or field of the
    /// kubeconfig that has the URL, for messages.
    pub fn parse(address: &str, setting_name: &str) -> Result<Self, InvalidProxy> {
        let with_scheme = match address.split_once("://") {
            // With either scheme, the proxy resolves host names.
            Some(("socks5h", rest)) => format!("socks5://{rest}"),
            Some(_) => address.to_owned(),
            None => format!("http://{address}"),
        };
        with_scheme
            .parse::<Uri>()
            .ok()
            .filter(|uri| {
                matches!(uri.scheme_str(), Some("http" | "https" | "socks5")) && has_host_and_valid_port(uri)
            })
            .map(|uri| Self {
                uri,
                setting_name: setting_name.to_owned(),
            })
            .ok_or_else(|| InvalidProxy {
                setting_name: setting_name.to_owned(),
            })
    }

    /// Finds the proxy for this target in the environment; `None` if the target needs none.
    pub fn from_environment(target: &Uri) -> Result<Option<Self>, InvalidProxy> {
        Self::from_variables(target, &|name| std::env::var(name).ok())
    }

    fn from_variables(
        target: &Uri,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, InvalidProxy> {
        let set = |capitals: &'static str| {
            [capitals.to_owned(), capitals.to_lowercase()]
                .into_iter()
                .find_map(|name| {
                    variable(&name)
                        .filter(|value| !value.is_empty())
                        .map(|value| (name, value))
                })
        };
        let named = match target.scheme_str() {
            Some("https") => set("HTTPS_PROXY"),
            Some("http") => set("HTTP_PROXY"),
            _ => None,
        };
        let Some((name, address)) = named.filter(|_| !is_this_machine(target)) else {
            return Ok(None);
        };
        let proxy = Self::parse(&address, &name)?;
        let exceptions = set("NO_PROXY").map_or_else(String::new, |(_, list)| list);
        let matcher = Matcher::builder().all("http://any").no(exceptions).build();
        Ok(matcher.intercept(target).map(|_| proxy))
    }

    /// Returns the name of the variable or of the kubeconfig's field that holds the URL.
    pub fn setting_name(&self) -> &str {
        &self.setting_name
    }

    /// Returns the URL with its credentials, for the connection.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }
}

/// Returns whether the URL has a host that is followed by a valid port or by nothing. `Uri` itself accepts a port of
/// any size.
fn has_host_and_valid_port(uri: &Uri) -> bool {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let behind_user = authority.rsplit('@').next().unwrap_or_default();
    let host = uri.host().filter(|host| !host.is_empty());
    let port = host.and_then(|host| behind_user.strip_prefix(host));
    port.is_some_and(|port| matches!(port, "" | ":") || uri.port().is_some())
}

fn is_this_machine(target: &Uri) -> bool {
    let host = target.host().unwrap_or_default();
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variables, a target, and the proxy for it.
    type Case = (
        Vec<(&'static str, &'static str)>,
        &'static str,
        Option<&'static str>,
    );

    #[test]
    fn the_environment_names_proxies_as_for_kubectl() {
        let all: &[(&'static str, &'static str)] = &[("HTTPS_PROXY", "http://s"), ("http_proxy", "h:3128")];
        let except = |list: &'static str| [all, &[("NO_PROXY", list)]].concat();
        let table: [Case; 14] = [
            (vec![], "https://a.b", None),
            (all.to_vec(), "https://a.b", Some("http://s/")),
            (all.to_vec(), "http://a.b", Some("http://h:3128/")),
            (all.to_vec(), "https://localhost:6443", None),
            (all.to_vec(), "https://127.8.0.1:6443", None),
            (all.to_vec(), "https://[::1]:6443", None),
            (except("a.b"), "https://a.b", None),
            (except("b"), "https://a.b:6443", None),
            (except(".b,"), "https://a.b", None),
            (except("x, 10.0.0.0/8"), "https://10.1.2.3", None),
            (except("x,10.0.0.0/8"), "https://11.1.2.3", Some("http://s/")),
            (except("*"), "https://a.b", None),
            (vec![("ALL_PROXY", "http://s")], "https://a.b", None),
            (
                vec![("https_proxy", "socks5h://u:p@s:1080")],
                "https://a.b",
                Some("socks5://u:p@s:1080/"),
            ),
        ];
        for (variables, target, expected) in table {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let target: Uri = target.parse().expect("an address");
            let proxy = Proxy::from_variables(&target, &variable).expect("a proxy or none");
            let uri = proxy.map(|proxy| proxy.uri().to_string());
            assert_eq!(uri.as_deref(), expected, "{target} {variables:?}");
        }
    }

    #[test]
    fn invalid_proxies_are_refused_without_their_password() {
        for address in [
            "ftp://u:SECRET@x",
            "http://u:SECRET@",
            "socks4://SECRET",
            "http://SECRET x",
            "http://u:SECRET@x:99999",
            "http://u:SECRET@:3128",
        ] {
            let error = Proxy::parse(address, "HTTPS_PROXY").expect_err(address);
            assert!(!error.to_string().contains("SECRET"), "{error}");
        }
        let proxy = Proxy::parse("https://u:SECRET@x", "HTTPS_PROXY").expect("a proxy");
        assert!(!format!("{proxy:?}").contains("SECRET"));
        assert_eq!(proxy.to_string(), "x of HTTPS_PROXY");
    }
}
