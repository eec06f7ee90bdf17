//! Where an extraction server is: an `http://` address, taken apart. No name is looked up here.

use std::fmt;

/// An `http://` address in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// A name or a number, an IPv6 one without its brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// Empty, or begins with a slash and does not end with one.
    pub(super) path: String,
}

impl Address {
    /// Reads an address, or says what is wrong with it, as what comes after the name of the setting.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with("https://") {
            return Err(format!("names {text}: TLS is not spoken here; open a tunnel and name its local end"));
        }
        let odd = || format!("names {text:?}, which is not like http://10.0.0.7:8000");
        let rest = text.strip_prefix("http://").ok_or_else(odd)?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let bracketed = authority.strip_prefix('[').and_then(|inner| inner.split_once(']'));
        let (host, port) = match bracketed {
            Some((host, "")) => (host, "80"),
            Some((host, port)) => (host, port.strip_prefix(':').ok_or_else(odd)?),
            None => authority.rsplit_once(':').unwrap_or((authority, "80")),
        };
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(odd)?;
        let letter =
            |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte) || bracketed.is_some() && byte == b':';
        let clean = path.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\\\"<>".contains(&byte));
        if host.is_empty() || !host.bytes().all(letter) || !clean {
            return Err(odd());
        }
        Ok(Self { host: host.to_owned(), port, path: path.trim_end_matches('/').to_owned() })
    }

    /// Host and port, as in a `Host` header.
    pub(super) fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_into_their_parts_and_written_back() {
        for (text, host, port, path) in [
            ("http://localhost:8000", "localhost", 8_000, ""),
            ("http://10.0.0.7", "10.0.0.7", 80, ""),
            ("http://10.0.0.7:9/v2/embedding", "10.0.0.7", 9, "/v2/embedding"),
            ("http://[::1]:8000/", "::1", 8_000, ""),
            ("http://[fe80::1]", "fe80::1", 80, ""),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!((address.host.as_str(), address.port, address.path.as_str()), (host, port, path));
            assert_eq!(Address::parse(&address.to_string()), Ok(address));
        }
    }
}
