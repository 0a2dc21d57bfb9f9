//! Reads responses as JSON lines and prints the normal form of each as one JSON line, so that anyone can check a
//! server's answer by hand.
//!
//! A line is `{ "status", "headers": {..}, "body"?, "now_epoch_ms", "request"?: { "method", "url_shape" | "url" },
//! "dialect"? | "provider"? }`, the form of `tests/fixtures/headers.json`; a file that is one JSON array is read too.
//! A dialect that is not known is told by shape: `cargo run -p paceline-signals --example classify < lines`.

use std::io::{Read as _, Write as _};

use serde_json::Value;

#[path = "../tests/kit/mod.rs"]
mod kit;

fn main() -> std::io::Result<()> {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input)?;
    let mut output = std::io::stdout().lock();
    let mut is_good = true;
    for case in cases(&input) {
        let line = match case {
            Ok(case) => kit::normal_form(&case, kit::dialect_of(&case)),
            Err(error) => {
                is_good = false;
                serde_json::json!({ "error": error.to_string() })
            }
        };
        writeln!(output, "{line}")?;
    }
    if is_good {
        Ok(())
    } else {
        Err(std::io::Error::other("a line is no JSON"))
    }
}

/// The lines, or the items of one array.
fn cases(input: &str) -> Vec<serde_json::Result<Value>> {
    if let Ok(Value::Array(items)) = serde_json::from_str(input) {
        return items.into_iter().map(Ok).collect();
    }
    let lines = input.lines().map(str::trim);
    let lines = lines
        .map(|line| line.trim_end_matches(','))
        .filter(|line| !["", "[", "]"].contains(line));
    lines.map(serde_json::from_str).collect()
}
