//! Meta's Graph API: percentages as JSON in headers, waits in minutes, refusals as 400 with a code.
//!
//! Percentages are no requests and make no budget. Source: developers.facebook.com, Graph API rate limiting
//! (`X-App-Usage`, `X-Business-Use-Case-Usage`).

use super::{Dialect, Facts, generic};
use crate::json::Value;
use crate::reading::Reading;
use crate::view::View;

pub(super) const DIALECT: Dialect = Dialect {
    name: "meta",
    knows: |view| {
        view.has(USE_CASES)
            || view.has("x-app-usage")
            || view.body.at(&["error", "type"]).is("OAuthException")
    },
    read,
    ..Dialect::PLAIN
};

const USE_CASES: &str = "x-business-use-case-usage";

fn read(view: &View<'_>, _: &Facts, reading: &mut Reading) {
    let code = view.body.at(&["error", "code"]).text().unwrap_or("");
    let scope = match code {
        "4" => Some("app"),
        "17" => Some("user"),
        "32" => Some("page"),
        "613" => Some("custom"),
        _ => None,
    };
    let is_use_case = code.len() == 5 && code.starts_with("800");
    if is_use_case {
        reading.refuse();
    }
    if let Some(scope) = scope {
        reading.refuse_by(scope);
    }
    let usage = view
        .header(USE_CASES)
        .and_then(|text| view.counted(Value::read(text)));
    let Some(Value::Object(accounts)) = usage else {
        return;
    };
    let uses = accounts.iter().flat_map(|(_, uses)| uses.items());
    let waits = uses.filter_map(|usage| {
        let minutes = view.body_wait(usage.get("estimated_time_to_regain_access"), 60_000)?;
        Some((minutes, usage.get("type").text()?))
    });
    let Some((wait, kind)) = waits.filter(|(wait, _)| *wait > 0).max() else {
        return;
    };
    reading.wait(Some(wait));
    reading.name(&generic::short(kind));
}
