//! Seeds of every profile, and those that once found something.

use paceline_sim::{Outcome, Profile, run};

/// Seeds of each profile; optimised runs are ten times as fast.
const SEEDS: u64 = if cfg!(debug_assertions) { 40 } else { 200 };

fn assert_clean(profile: Profile, seed: u64) {
    let Outcome { violation, .. } = run(seed, profile);
    let name = profile.as_str();
    assert_eq!(
        violation, None,
        "cargo run --release -p paceline-sim -- --seed {seed} --profile {name}"
    );
}

fn assert_all_clean(profile: Profile) {
    for seed in 0..SEEDS {
        assert_clean(profile, seed);
    }
}

#[test]
fn no_rule_is_broken_when_nothing_breaks() {
    assert_all_clean(Profile::Calm);
}

#[test]
fn no_rule_is_broken_by_servers() {
    assert_all_clean(Profile::Storm);
}

#[test]
fn no_rule_is_broken_by_sleep_and_clocks() {
    assert_all_clean(Profile::Suspend);
}

#[test]
fn no_rule_is_broken_by_deaths_and_takeovers() {
    assert_all_clean(Profile::Crash);
}

#[test]
fn no_rule_is_broken_by_a_hostile_tab() {
    assert_all_clean(Profile::Hostile);
}

#[test]
fn no_rule_is_broken_by_the_disk() {
    assert_all_clean(Profile::SlowDisk);
}

#[test]
fn no_rule_is_broken_by_all_of_it() {
    assert_all_clean(Profile::Chaos);
}

#[test]
fn no_rule_is_broken_by_a_release() {
    assert_all_clean(Profile::Upgrade);
}

#[test]
fn no_rule_is_broken_by_other_algorithms_and_limits_that_change() {
    assert_all_clean(Profile::Limits);
}

#[test]
fn no_rule_is_broken_where_checks_stand_for_keys() {
    assert_all_clean(Profile::Checks);
}

#[test]
fn what_was_found_stays_mended() {
    let seeds = include_str!("../seeds.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    for line in seeds {
        let mut words = line.split_whitespace();
        let profile = words.next().and_then(Profile::parse).expect("a profile");
        let seed = words
            .next()
            .and_then(|seed| seed.parse().ok())
            .expect("a seed");
        assert_clean(profile, seed);
    }
}

#[test]
fn the_same_seed_twice_is_the_same_run() {
    for profile in Profile::ALL {
        let (first, again, other) = (run(3, profile), run(3, profile), run(4, profile));

        assert_eq!(first, again);
        assert_ne!(first.hash, other.hash);
    }
}
