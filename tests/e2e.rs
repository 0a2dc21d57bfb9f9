//! Starts the browser tests in `tests/e2e` with the demo binary that cargo built for them. `cargo xtask test` names the
//! browsers and reads the report; the specs start the binary themselves, on ports of their own.

use std::env;
use std::process::Command;

#[test]
fn browser_tests_pass() {
    let mut playwright = Command::new("node_modules/.bin/playwright");
    playwright.current_dir(env!("CARGO_MANIFEST_DIR"));
    playwright.args(["test", "--pass-with-no-tests"]);
    playwright.env("PACELINE_DEMO", env!("CARGO_BIN_EXE_paceline-demo"));
    if let Ok(filters) = env::var("PACELINE_E2E_FILTERS")
        && !filters.is_empty()
    {
        playwright.args(["--grep", &filters]);
    }

    let status = playwright
        .status()
        .expect("`cargo xtask setup` installs Playwright");

    assert!(status.success(), "a browser test failed: {status}");
}
