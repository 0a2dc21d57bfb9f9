//! AWS: a throttle code in JSON, in XML or in a header, under 400, 429 or 503.
//!
//! Sources: boto/botocore, retries/standard.py; Amazon S3, error responses.

use super::{Dialect, Facts};
use crate::reading::Reading;
use crate::view::View;

pub(super) const DIALECT: Dialect = Dialect {
    name: "aws",
    knows: |view| {
        view.has("x-amzn-errortype")
            || view.body.get("__type").is_some()
            || xml_code(view).is_some()
    },
    read,
    ..Dialect::PLAIN
};

const THROTTLES: [&str; 13] = [
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestThrottledException",
    "RequestThrottled",
    "TooManyRequestsException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "BandwidthLimitExceeded",
    "LimitExceededException",
    "SlowDown",
    "PriorRequestNotComplete",
    "EC2ThrottledException",
];

fn read(view: &View<'_>, _: &Facts, reading: &mut Reading) {
    let in_body = view
        .body
        .get("__type")
        .text()
        .or_else(|| view.body.get("code").text());
    let code = in_body
        .or_else(|| view.header("x-amzn-errortype"))
        .or_else(|| xml_code(view));
    // `namespace#Code` and `Code:http://...`.
    let code = code.and_then(|code| code.rsplit('#').next()?.split(':').next());
    if let Some(code) = code.filter(|code| THROTTLES.contains(code)) {
        reading.refuse_by(code);
    }
}

fn xml_code<'a>(view: &View<'a>) -> Option<&'a str> {
    if view.status < 400 || !view.text.starts_with('<') {
        return None;
    }
    let (_, rest) = view.text.split_once("<Code>")?;
    rest.split_once("</Code>").map(|(code, _)| code)
}
