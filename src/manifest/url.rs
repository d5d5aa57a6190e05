//! The URL of a manifest, its credentials, and the URL that a redirect leads to.
//!
//! Credentials stay with the scheme, host and port that they were given for.

use http::Uri;
use http::uri::Scheme;
use percent_encoding::percent_decode_str;

use super::remote::RemoteError;

/// A URL, with its credentials in a field of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UrlWithCredentials {
    /// The URL without credentials.
    pub(super) uri: Uri,
    /// `user:password`, decoded.
    pub(super) credentials: Option<Vec<u8>>,
}

impl UrlWithCredentials {
    /// Parses a URL that the user gave.
    pub(super) fn parse(address: &str) -> Result<Self, RemoteError> {
        let uri: Uri = address.parse().map_err(|_| RemoteError::Address)?;
        let authority = uri.authority().ok_or(RemoteError::Address)?.as_str();
        let Some((credentials, host)) = authority.rsplit_once('@') else {
            return Ok(Self {
                uri,
                credentials: None,
            });
        };
        let credentials = decode_credentials(credentials);
        let host_and_port = host.parse().map_err(|_| RemoteError::Address)?;
        let mut parts = uri.into_parts();
        parts.authority = Some(host_and_port);
        Ok(Self {
            uri: Uri::from_parts(parts).map_err(|_| RemoteError::Address)?,
            credentials: Some(credentials),
        })
    }

    /// Resolves a Location header against this URL (RFC 3986, 5.2). Refuses a redirect from https to http. The result
    /// has the credentials of the header, else the credentials of this URL if scheme, host and port are the same.
    pub(super) fn resolve_redirect(&self, location: &str) -> Result<Self, RemoteError> {
        let location = location.split('#').next().unwrap_or_default();
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let next = if has_scheme(location) {
            Self::parse(location)?
        } else if location.starts_with("//") {
            Self::parse(&format!("{scheme}:{location}"))?
        } else {
            let authority = self.uri.authority().map_or("", |authority| authority.as_str());
            Self::parse(&format!("{scheme}://{authority}{}", self.resolve_path(location)))?
        };
        match (self.uri.scheme(), next.uri.scheme()) {
            (_, Some(scheme)) if *scheme == Scheme::HTTPS => {}
            (Some(scheme), _) if *scheme == Scheme::HTTPS => return Err(RemoteError::Unencrypted),
            (_, Some(scheme)) if *scheme == Scheme::HTTP => {}
            _ => return Err(RemoteError::Address),
        }
        if next.credentials.is_none() && next.has_origin_of(self) {
            return Ok(Self {
                credentials: self.credentials.clone(),
                ..next
            });
        }
        Ok(next)
    }

    /// Returns the path and query that a relative reference leads to from this URL.
    fn resolve_path(&self, reference: &str) -> String {
        let path = self.uri.path();
        let (reference_path, query) = match reference.split_once('?') {
            Some((path, query)) => (path, format!("?{query}")),
            None => (reference, String::new()),
        };
        if reference.is_empty() {
            return self
                .uri
                .path_and_query()
                .map_or("/", |path| path.as_str())
                .to_owned();
        }
        if reference_path.is_empty() {
            return format!("{path}{query}");
        }
        if reference_path.starts_with('/') {
            return format!("{}{query}", resolve_dot_segments(reference_path));
        }
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        format!(
            "{}{query}",
            resolve_dot_segments(&format!("{directory}/{reference_path}"))
        )
    }

    fn has_origin_of(&self, other: &Self) -> bool {
        origin(&self.uri) == origin(&other.uri)
    }
}

/// Returns scheme, host and port.
fn origin(uri: &Uri) -> (Option<&str>, Option<String>, u16) {
    let port = uri.port_u16().unwrap_or(match uri.scheme_str() {
        Some("https") => 443,
        _ => 80,
    });
    (uri.scheme_str(), uri.host().map(str::to_ascii_lowercase), port)
}

/// Returns whether a reference begins with a scheme, such as `https:`.
fn has_scheme(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else {
        return false;
    };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
}

/// Resolves the `.` and `..` of an absolute path.
fn resolve_dot_segments(path: &str) -> String {
    let mut resolved: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    resolved.pop();
                }
                if is_last {
                    resolved.push("");
                }
            }
            segment => resolved.push(segment),
        }
    }
    format!("/{}", resolved.join("/"))
}

/// Returns `user:password` of a URL, both decoded; a user alone has an empty password.
fn decode_credentials(credentials: &str) -> Vec<u8> {
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let mut decoded: Vec<u8> = percent_decode_str(user).collect();
    decoded.push(b':');
    decoded.extend(percent_decode_str(password));
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_a_url_are_decoded() {
        for (text, expected) in [
            ("u:p", "u:p"),
            ("u:p%40+&=", "u:p@+&="),
            ("u", "u:"),
            ("%75:%2540", "u:%40"),
            ("u:a%3Ab:c", "u:a:b:c"),
            ("u:100%", "u:100%"),
        ] {
            let target = UrlWithCredentials::parse(&format!("https://{text}@a.b/c?d")).expect("an address");
            assert_eq!(target.credentials.as_deref(), Some(expected.as_bytes()), "{text}");
            assert_eq!(target.uri.to_string(), "https://a.b/c?d");
        }
    }

    #[test]
    fn a_redirect_leads_where_a_browser_would_go() {
        let table = [
            ("d", "https://a.b/x/d"),
            ("d/e?f=g#h", "https://a.b/x/d/e?f=g"),
            ("/d", "https://a.b/d"),
            ("../d", "https://a.b/d"),
            ("../../../d", "https://a.b/d"),
            ("./d/./e/..", "https://a.b/x/d/"),
            (".", "https://a.b/x/"),
            ("?q=/r:s", "https://a.b/x/y?q=/r:s"),
            ("", "https://a.b/x/y?z=1"),
            ("//c.d/e", "https://c.d/e"),
            ("https://c.d", "https://c.d/"),
            ("HTTPS://c.d:8443/e", "https://c.d:8443/e"),
            ("d:e", "refused"),
            ("file:///etc/passwd", "refused"),
            ("http://a.b/d", "refused"),
        ];
        let target = UrlWithCredentials::parse("https://a.b/x/y?z=1").expect("an address");
        for (location, expected) in table {
            let next = target.resolve_redirect(location);
            let next = next.map_or("refused".to_owned(), |next| next.uri.to_string());
            assert_eq!(next, expected, "{location:?}");
        }
    }

    #[test]
    fn credentials_stay_with_their_server() {
        let table = [
            ("/d", Some("u:p@")),
            ("https://a.b/d", Some("u:p@")),
            ("https://A.B:443/d", Some("u:p@")),
            ("//a.b/d", Some("u:p@")),
            ("https://v%40:w@a.b/d", Some("v@:w")),
            ("https://a.b:8443/d", None),
            ("https://c.a.b/d", None),
            ("https://a.b.c/d", None),
        ];
        let target = UrlWithCredentials::parse("https://u:p%40@a.b/x").expect("an address");
        for (location, expected) in table {
            let next = target.resolve_redirect(location).expect("an address");
            assert_eq!(
                next.credentials.as_deref(),
                expected.map(str::as_bytes),
                "{location}"
            );
        }
        let plain = UrlWithCredentials::parse("http://u:p@a.b").expect("an address");
        let encrypted = plain.resolve_redirect("https://a.b/").expect("an address");
        assert_eq!(encrypted.credentials, None);
    }
}
