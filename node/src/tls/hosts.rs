//! Whether a certificate is made out to a host.
//!
//! A name is matched as ZooKeeper matches it (and RFC 2818 before it): the alternative names where there are
//! any hosts or addresses among them, and only without those the common name, which old certificates have
//! alone.

use std::net::IpAddr;

use x509_parser::extensions::{GeneralName, ParsedExtension};

use super::certificate::Certificate;

/// True when the certificate is made out to this host or address.
pub(super) fn is_for(certificate: &Certificate<'_>, host: &str) -> bool {
    let (names, addresses) = alternative_names(certificate);
    if !names.is_empty() || !addresses.is_empty() {
        return match host.parse::<IpAddr>() {
            Ok(address) => addresses.contains(&address.to_canonical()),
            Err(_) => names.iter().any(|name| names_host(name, host)),
        };
    }
    let common = certificate.parsed().subject().iter_common_name().last();
    common.and_then(|name| name.as_str().ok()).is_some_and(|name| names_host(name, host))
}

/// Hosts and addresses among the alternative names.
fn alternative_names<'a>(certificate: &Certificate<'a>) -> (Vec<&'a str>, Vec<IpAddr>) {
    let mut names = Vec::new();
    let mut addresses = Vec::new();
    for extension in certificate.parsed().tbs_certificate.extensions() {
        let ParsedExtension::SubjectAlternativeName(alternative) = extension.parsed_extension() else {
            continue;
        };
        for name in &alternative.general_names {
            match name {
                GeneralName::DNSName(name) => names.push(*name),
                GeneralName::IPAddress(bytes) => addresses.extend(address(bytes)),
                _ => {}
            }
        }
    }
    (names, addresses)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let address = four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()?;
    Some(address.to_canonical())
}

/// A name, or one whose first label is `*`, which stands for exactly one label of at least two behind it.
fn names_host(pattern: &str, host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let Some(domain) = pattern.strip_prefix("*.") else { return pattern.eq_ignore_ascii_case(host) };
    match host.split_once('.') {
        Some((label, rest)) => !label.is_empty() && domain.contains('.') && rest.eq_ignore_ascii_case(domain),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_one_label() {
        for (pattern, host, matches) in [
            ("zoo1.example.org", "ZOO1.example.org", true),
            ("zoo1.example.org", "zoo1.example.org.", true),
            ("*.example.org", "zoo1.example.org", true),
            ("*.example.org", "a.zoo1.example.org", false),
            ("*.example.org", "example.org", false),
            ("*.org", "example.org", false),
            ("z*.example.org", "zoo1.example.org", false),
            ("*", "zoo1", false),
        ] {
            assert_eq!(names_host(pattern, host), matches, "{host} by {pattern}");
        }
    }
}
