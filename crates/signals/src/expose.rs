//! The headers that a dialect reads, by the names that a server's owner knows: what has to be exposed to other origins.

use crate::own::{AnyDialect, OwnDialect, Window};

/// What is read whatever the dialect.
const ALWAYS: [&str; 2] = ["Retry-After", "Date"];
const USUAL: [&str; 3] = [
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
];

impl AnyDialect {
    /// Returns the headers that it reads; of dialects that are told by shape, the usual ones.
    pub fn headers(&self) -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut headers: Vec<String> = owned(&ALWAYS);
        headers.extend(match self {
            Self::Own(own) => own.names(),
            Self::Known(dialect) => owned(of(dialect.name())),
            // Nobody knows what a function reads.
            Self::Defined(_) => Vec::new(),
        });
        headers
    }
}

/// The headers of a known dialect, where they have other names than the usual ones.
fn of(name: &str) -> &'static [&'static str] {
    match name {
        "ietf" => &["RateLimit", "RateLimit-Policy"],
        "github" => &[
            "X-RateLimit-Limit",
            "X-RateLimit-Remaining",
            "X-RateLimit-Reset",
            "X-RateLimit-Used",
            "X-RateLimit-Resource",
        ],
        "hubspot" => &[
            "X-HubSpot-RateLimit-Max",
            "X-HubSpot-RateLimit-Remaining",
            "X-HubSpot-RateLimit-Interval-Milliseconds",
            "X-HubSpot-RateLimit-Daily",
            "X-HubSpot-RateLimit-Daily-Remaining",
        ],
        "shopify" => &["X-Shopify-Shop-Api-Call-Limit"],
        "stripe" => &["Stripe-Should-Retry", "Stripe-Rate-Limited-Reason"],
        _ => &USUAL,
    }
}

impl OwnDialect {
    /// The headers that it names, each once.
    fn names(&self) -> Vec<String> {
        let plain = [
            &self.limit,
            &self.remaining,
            &self.used,
            &self.cost,
            &self.scope,
        ];
        let window = match &self.window {
            Some(Window::Told(told)) => Some(told),
            Some(Window::Fixed(_)) | None => None,
        };
        let timed = [self.reset.as_ref(), self.retry_after.as_ref(), window];
        let timed = timed.into_iter().flatten().map(|timed| &timed.header);
        let mut names: Vec<String> = Vec::new();
        for name in plain.into_iter().flatten().chain(timed) {
            if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                names.push(name.clone());
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, Kind, Timed};

    #[test]
    fn an_own_dialect_names_its_headers_once_and_what_is_always_read() {
        let own = OwnDialect {
            remaining: Some("X-Left".to_owned()),
            reset: Some(Timed {
                header: "x-left".to_owned(),
                kind: Kind::Auto,
            }),
            window: Some(Window::Fixed(1_000)),
            ..OwnDialect::default()
        };

        assert_eq!(
            AnyDialect::from(own).headers(),
            ["Retry-After", "Date", "X-Left"]
        );
    }

    #[test]
    fn a_dialect_told_by_its_shape_names_the_usual_headers() {
        let headers = AnyDialect::default().headers();

        assert!(headers.contains(&"X-RateLimit-Reset".to_owned()));
        assert_ne!(
            AnyDialect::from(Dialect::named("ietf").unwrap()).headers(),
            headers
        );
    }
}
