//! What a client shows to prove who it is.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::fields::Fields;

/// A name and a password, in the scheme `Basic` (RFC 7617).
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name.
    pub name: String,
    /// The password, whatever its bytes mean.
    pub password: Vec<u8>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Passwords belong in no log.
        f.debug_struct("Credentials").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Credentials {
    /// What a head shows to a proxy, if it can be understood: whatever cannot is as good
    /// as nothing, and the client is asked again.
    pub(super) fn read(fields: Fields<'_>) -> Option<Credentials> {
        let mut shown = fields.all("proxy-authorization");
        let (only, None) = (shown.next()?, shown.next()) else { return None };
        let (scheme, token) = only.split_at(only.iter().position(|byte| *byte == b' ')?);
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return None;
        }
        let mut pair = BASE64_STANDARD.decode(token.trim_ascii()).ok()?;
        let colon = pair.iter().position(|byte| *byte == b':')?;
        let password = pair.split_off(colon + 1);
        pair.truncate(colon);
        Some(Credentials { name: String::from_utf8(pair).ok()?, password })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Request;

    fn shown(fields: &[&str]) -> Option<Credentials> {
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        let head = format!("GET http://a/ HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let request = Request::read(head.as_bytes(), None).expect("it is correct");
        assert!(!request.head.windows(5).any(|it| it.eq_ignore_ascii_case(b"proxy")));
        request.credentials
    }

    #[test]
    fn a_name_ends_at_the_first_colon() {
        let found = shown(&["Proxy-Authorization: bAsIc  w6Rubmk6YTpi"]).unwrap();
        assert_eq!((found.name.as_str(), &found.password[..]), ("änni", &b"a:b"[..]));
        assert!(!format!("{found:?}").contains("97"));
        let empty = shown(&["Proxy-Authorization: Basic YTo="]).unwrap();
        assert_eq!(empty, Credentials { name: "a".into(), password: Vec::new() });
    }

    #[test]
    fn what_cannot_be_understood_is_nothing() {
        let field = "Proxy-Authorization: Basic YTpi";
        assert!(shown(&[field]).is_some());
        for fields in [
            &[][..],
            &["Authorization: Basic YTpi"],
            &["Proxy-Authorization: Basic"],
            &["Proxy-Authorization: Bearer YTpi"],
            &["Proxy-Authorization: Basic YT:i"],
            &["Proxy-Authorization: Basic YWI="],
            &["Proxy-Authorization: Basic /zpi"],
            &[field, field],
        ] {
            assert_eq!(shown(fields), None, "{fields:?}");
        }
    }
}
