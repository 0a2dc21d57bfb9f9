//! The dialects: how each API writes what it says of limits.
//!
//! Owns the table of them and the choice of one. A dialect is a few facts (the window that its documentation names, how
//! its reset is written) and, where that is not enough, code that reads more. Invariant: none of them can do worse than
//! find nothing; status and `Retry-After` are read for all of them.

mod airtable;
mod anthropic;
mod asana;
mod aws;
mod azure_arm;
mod binance;
mod bluesky;
mod cloudflare;
mod crossref;
mod digitalocean;
mod discord;
mod docker_hub;
mod dropbox;
mod envoy;
mod etsy;
mod generic;
mod github;
mod gitlab;
mod google;
mod graphql;
mod heroku;
mod hubspot;
mod hugging_face;
mod ietf;
mod intercom;
mod jira;
mod kraken;
mod linear;
mod mastodon;
mod meta;
mod microsoft_graph;
mod monday;
mod notion;
mod okta;
mod openai;
mod reddit;
mod resend;
mod salesforce;
mod scoped;
mod sendgrid;
mod sentry;
mod shopify;
mod slack;
mod stack_exchange;
mod stripe;
mod supabase;
mod telegram;
mod together;
mod trello;
mod twilio;
mod twitch;
mod vimeo;
mod x;
mod zendesk;

pub(crate) use generic::short;

use crate::reading::Reading;
use crate::view::{Reset, View};

/// Of which answers a dialect needs the beginning of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyNeed {
    /// Of errors, from 400 on.
    #[default]
    Errors,
    /// Of errors, and of what a GraphQL endpoint answers: it refuses under 200.
    GraphQl,
    /// Of every answer.
    All,
}

impl BodyNeed {
    /// Returns the name used between host and transport.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Errors => "errors",
            Self::GraphQl => "graphql",
            Self::All => "all",
        }
    }
}

/// How one API writes its signals.
#[derive(Clone, Copy)]
pub struct Dialect {
    name: &'static str,
    body: BodyNeed,
    reset: Reset,
    window_ms: Option<u64>,
    knows: fn(&View<'_>) -> bool,
    read: fn(&View<'_>, &Facts, &mut Reading),
}

/// What a dialect knows beyond the response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// How the reset of the usual headers is written.
    pub(crate) reset: Reset,
    /// The window of the usual headers, by their documentation.
    pub(crate) window_ms: Option<u64>,
}

impl Facts {
    /// Nothing: magnitude and shape tell.
    const NONE: Self = Self {
        reset: Reset::Auto,
        window_ms: None,
    };
}

impl Dialect {
    /// Told by shape and magnitude.
    const AUTO: Self = Self {
        name: "auto",
        body: BodyNeed::GraphQl,
        reset: Reset::Auto,
        window_ms: None,
        knows: |_| false,
        read: auto,
    };

    /// The usual headers and nothing else.
    const PLAIN: Self = Self {
        name: "generic",
        body: BodyNeed::Errors,
        read: generic::read,
        ..Self::AUTO
    };

    /// Returns the dialect that is told by shape and magnitude.
    pub const fn auto() -> Self {
        Self::AUTO
    }

    /// Returns the dialect of that name.
    pub fn named(name: &str) -> Option<Self> {
        let own = [Self::AUTO, Self::PLAIN];
        own.into_iter()
            .chain(ALL.iter().copied())
            .find(|dialect| dialect.name == name)
    }

    /// Returns all names, in order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let own = [Self::AUTO, Self::PLAIN];
        own.into_iter()
            .chain(ALL.iter().copied())
            .map(|dialect| dialect.name)
    }

    /// Returns its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Tells of which answers it needs the beginning of the body.
    pub const fn body(&self) -> BodyNeed {
        self.body
    }

    pub(crate) fn read(&self, view: &View<'_>, reading: &mut Reading) {
        reading.dialect = self.name;
        let facts = Facts {
            reset: self.reset,
            window_ms: self.window_ms,
        };
        (self.read)(view, &facts, reading);
    }
}

impl std::fmt::Debug for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Dialect").field(&self.name).finish()
    }
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Dialect {}

/// The dialects, those first whose marks are the clearest: `auto` takes the first that knows the response. A build
/// without them tells what they add (`cargo xtask size`).
const ALL: &[Dialect] = if cfg!(paceline_no_dialects) {
    &[]
} else {
    &OF_APIS
};

const OF_APIS: [Dialect; 52] = [
    discord::DIALECT,
    github::DIALECT,
    gitlab::DIALECT,
    hubspot::DIALECT,
    stripe::DIALECT,
    anthropic::DIALECT,
    openai::DIALECT,
    linear::DIALECT,
    zendesk::DIALECT,
    salesforce::DIALECT,
    jira::DIALECT,
    trello::DIALECT,
    etsy::DIALECT,
    binance::DIALECT,
    sentry::DIALECT,
    crossref::DIALECT,
    twilio::DIALECT,
    azure_arm::DIALECT,
    hugging_face::DIALECT,
    ietf::DIALECT,
    shopify::DIALECT,
    monday::DIALECT,
    notion::DIALECT,
    google::DIALECT,
    meta::DIALECT,
    aws::DIALECT,
    dropbox::DIALECT,
    kraken::DIALECT,
    telegram::DIALECT,
    stack_exchange::DIALECT,
    graphql::DIALECT,
    airtable::DIALECT,
    asana::DIALECT,
    bluesky::DIALECT,
    cloudflare::DIALECT,
    digitalocean::DIALECT,
    docker_hub::DIALECT,
    envoy::DIALECT,
    heroku::DIALECT,
    intercom::DIALECT,
    mastodon::DIALECT,
    microsoft_graph::DIALECT,
    okta::DIALECT,
    reddit::DIALECT,
    resend::DIALECT,
    sendgrid::DIALECT,
    slack::DIALECT,
    supabase::DIALECT,
    together::DIALECT,
    twitch::DIALECT,
    vimeo::DIALECT,
    x::DIALECT,
];

/// Reads by the first dialect whose marks are there. The meaning of a reset is then told by its magnitude, because a
/// proxy may have written it.
fn auto(view: &View<'_>, _: &Facts, reading: &mut Reading) {
    let known = ALL.iter().find(|dialect| (dialect.knows)(view));
    let dialect = known.unwrap_or(&Dialect::PLAIN);
    let facts = Facts {
        window_ms: dialect.window_ms,
        ..Facts::NONE
    };
    reading.dialect = dialect.name;
    (dialect.read)(view, &facts, reading);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_used_once_and_found() {
        let names: Vec<&str> = Dialect::names().collect();
        for name in &names {
            assert_eq!(
                names.iter().filter(|other| *other == name).count(),
                1,
                "{name}"
            );
            assert_eq!(Dialect::named(name).unwrap().name(), *name);
        }
        assert_eq!(Dialect::named("nobody's"), None);
    }
}
