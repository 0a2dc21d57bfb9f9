use oorandom::Rand64;

use super::*;
use crate::config::{Algorithm, LimitRule};
use crate::ids::{BudgetId, Seq};
use crate::io::Cause;
use crate::lane::Rank;

fn budget(rules: &[&str], max_in_flight: Option<u64>) -> Budget {
    let rules = rules
        .iter()
        .map(|rule| LimitRule::parse(rule, Algorithm::ArrivalLog).unwrap())
        .collect();
    let id = BudgetId::parse("b").unwrap();
    Budget::new(
        BudgetConfig::new(id, rules, max_in_flight, 1_000, None).unwrap(),
        Mono::default(),
    )
}

fn now(millis: u64) -> Now {
    Now::from_millis(millis, 1_000_000 + millis)
}

fn at(millis: u64) -> Mono {
    Mono::from_millis(millis)
}

fn ask(
    budget: &mut Budget,
    lane: Lane,
    cost: u32,
    at: Mono,
    horizon: Mono,
) -> Result<Mono, Blocked> {
    let urgency = budget.urgency(lane);
    let asked = Asked {
        urgency,
        cost,
        horizon,
    };
    budget.check(asked, at)
}

fn check(budget: &mut Budget, cost: u32, at: Mono) -> Result<Mono, Blocked> {
    ask(budget, Lane::Interactive, cost, at, at)
}

fn ticket(n: u64) -> Ticket {
    (Seq::from_u64(n), 1)
}

#[test]
fn a_retry_after_is_never_shortened_and_ends_with_jitter() {
    let mut budget = budget(&["10/s"], None);
    let mut rng = Rand64::new(1);

    budget.refused(at(90), Some(20_000), now(100), &mut rng);
    budget.refused(at(95), Some(3_000), now(110), &mut rng);

    let until = budget.pause().unwrap().until;
    assert!((20_100..=21_100).contains(&until.as_millis()), "{until:?}");
    assert_eq!(
        check(&mut budget, 1, at(20_099)).unwrap_err().cause,
        Cause::Paused
    );
}

#[test]
fn parallel_refusals_are_one_refusal() {
    let mut budget = budget(&["10/s"], None);
    let mut rng = Rand64::new(1);

    for n in 0..50 {
        budget.refused(at(90), None, now(100 + n), &mut rng);
    }

    assert_eq!(budget.record(now(0)).refusals_in_a_row, 1);
    assert!(budget.pause().unwrap().until.as_millis() <= 149 + 2_000);
}

#[test]
fn a_guess_doubles_while_refusals_repeat_and_then_holds() {
    let mut budget = budget(&["10/s"], None);
    let mut rng = Rand64::new(1);
    let mut clock = 0;
    let mut waits = Vec::new();
    for _ in 0..10 {
        clock += 1;
        let refusal = budget.refused(at(clock), None, now(clock), &mut rng);
        let until = budget.pause().unwrap().until;
        waits.push(until.since(at(clock)) / 1_000);
        clock = until.as_millis();
        budget.reopen_if_due(until);
        assert_eq!(refusal.holds_now, waits.len() == 10);
    }

    assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]), "{waits:?}");
    assert!((60..=61).contains(&waits[9]), "{waits:?}");
    assert_eq!(
        check(&mut budget, 1, at(clock)).unwrap_err().cause,
        Cause::Held
    );
}

#[test]
fn a_resumed_budget_sends_one_probe() {
    let mut budget = budget(&["10/s"], Some(5));
    budget.hold(HoldCause::Refusing);

    budget.resume();

    assert!(check(&mut budget, 1, at(0)).is_ok());
    budget.take(ticket(1), 1, now(0));
    assert_eq!(
        check(&mut budget, 1, at(0)).unwrap_err().cause,
        Cause::InFlight
    );
}

#[test]
fn reopening_is_no_burst() {
    let mut budget = budget(&["10/s"], None);
    budget.refused(at(0), Some(1_000), now(0), &mut Rand64::new(1));
    let open = budget.pause().unwrap().until;
    assert!(budget.reopen_if_due(open));

    budget.take(ticket(1), 1, now(open.as_millis()));

    let blocked = check(&mut budget, 1, open).unwrap_err();
    assert_eq!(
        (blocked.cause, blocked.until),
        (Cause::Rate, Some(open.plus(100)))
    );
}

#[test]
fn concurrency_alone_restarts_at_one_and_doubles() {
    let mut budget = budget(&[], Some(4));
    budget.refused(at(0), Some(1_000), now(0), &mut Rand64::new(1));
    let open = budget.pause().unwrap().until;
    budget.reopen_if_due(open);
    budget.take(ticket(1), 1, now(open.as_millis()));
    assert!(check(&mut budget, 1, open).is_err());

    budget.answered(ticket(1), 10, open);
    budget.succeeded(open, open);

    budget.take(ticket(2), 1, now(open.as_millis()));
    assert!(check(&mut budget, 1, open).is_ok());
}

#[test]
fn nothing_is_consumed_unless_all_rules_admit() {
    let mut budget = budget(&["10/s", "1/10s"], None);
    budget.take(ticket(1), 1, now(0));
    budget.answered(ticket(1), 10, at(10));

    let blocked = check(&mut budget, 1, at(2_000)).unwrap_err();

    assert_eq!(blocked.until, Some(at(10_011)));
    assert_eq!(blocked.rule.unwrap().window_ms(), 10_000);
    assert_eq!(budget.believed_free(at(2_000)), 0);
    assert_eq!(budget.limiters[0].free(at(2_000)), 10);
}

#[test]
fn an_attempt_of_a_dead_owner_counts_as_in_flight_until_it_is_over() {
    let mut budget = budget(&["10/s"], Some(1));
    let start = now(5_000);

    budget.restore_in_flight(Wall::from_millis(1_000_000 + 9_000), start);

    assert_eq!(
        check(&mut budget, 1, at(5_000)).unwrap_err().until,
        Some(at(9_000))
    );
    assert!(check(&mut budget, 1, at(9_000)).is_ok());
}

#[test]
fn concurrency_bounds_the_estimate() {
    let mut budget = budget(&["10/s"], Some(4));
    for n in 0..30 {
        budget.take(ticket(n), 1, now(n));
        budget.answered(ticket(n), 2_000, at(n));
    }

    let eta = budget
        .eta_ms(
            Work {
                jobs: 100,
                cost: 100,
            },
            at(10_000),
        )
        .unwrap();

    assert!((50_000..=53_000).contains(&eta), "{eta}");
}

#[test]
fn an_answer_of_before_a_refusal_leaves_the_guesses_doubling() {
    let mut budget = budget(&["10/s"], None);
    let mut rng = Rand64::new(1);
    let guess = |budget: &mut Budget, rng: &mut Rand64, clock| {
        budget.refused(at(clock), None, now(clock), rng);
        let until = budget.pause().expect("a pause").until;
        budget.reopen_if_due(until);
        until.since(at(clock))
    };

    let first = guess(&mut budget, &mut rng, 100);
    budget.succeeded(at(90), at(120));
    let second = guess(&mut budget, &mut rng, 5_000);
    budget.succeeded(at(9_000), at(9_100));
    let third = guess(&mut budget, &mut rng, 20_000);

    assert!((1_000..2_001).contains(&first), "{first}");
    assert!((2_000..3_001).contains(&second), "{second}");
    assert!((1_000..2_001).contains(&third), "{third}");
}

#[test]
fn each_refusal_halves_and_each_clean_stretch_gives_a_tenth_back() {
    let mut budget = budget(&["100/s"], None);
    let mut rng = Rand64::new(1);
    budget.refused(at(1), Some(1_000), now(1), &mut rng);
    budget.reopen_if_due(at(3_000));
    assert_eq!(budget.believed_free(at(3_000)), 50);

    budget.succeeded(at(5_000), at(5_000));
    assert_eq!(budget.believed_free(at(5_000)), 50);
    assert!(budget.succeeded(at(10_001), at(10_001)));

    assert_eq!(budget.believed_free(at(10_001)), 60);
    assert_eq!(budget.record(now(0)).factor_permille, Some(600));
}

#[test]
fn the_rate_never_shrinks_below_a_tenth() {
    let mut budget = budget(&["100/s"], None);
    let mut rng = Rand64::new(1);
    for n in 0..8 {
        budget.refused(
            at(n * 100_000 + 1),
            Some(1_000),
            now(n * 100_000 + 1),
            &mut rng,
        );
        budget.reopen_if_due(at(n * 100_000 + 5_000));
    }

    assert_eq!(budget.believed_free(at(900_000)), 10);
}

#[test]
fn a_cost_above_a_lowered_limit_goes_alone() {
    let mut budget = budget(&["10/s"], None);
    budget.take(ticket(1), 1, now(0));
    let lower = LimitRule::parse("2/s", Algorithm::ArrivalLog).unwrap();
    let id = BudgetId::parse("b").unwrap();
    budget.configure(
        BudgetConfig::new(id, vec![lower], None, 1_000, None).unwrap(),
        at(0),
    );

    assert!(check(&mut budget, 5, at(0)).is_err());
    budget.answered(ticket(1), 10, at(10));
    assert!(check(&mut budget, 5, at(1_011)).is_ok());
}

#[test]
fn an_instant_that_was_looked_at_is_not_gone_back_on() {
    let mut budget = budget(&["1/s"], None);
    budget.take(ticket(1), 1, now(0));
    budget.answered(ticket(1), 10, at(10));

    assert_eq!(
        ask(&mut budget, Lane::Interactive, 1, at(1_000), at(1_020)),
        Ok(at(1_011))
    );

    assert_eq!(
        ask(&mut budget, Lane::Interactive, 1, at(1_000), at(1_000)),
        Ok(at(1_011))
    );
}

#[test]
fn a_heavy_start_does_not_end_the_ramp() {
    let mut budget = budget(&["20/s"], None);
    budget.refused(at(0), Some(1_000), now(0), &mut Rand64::new(1));
    let open = budget.pause().unwrap().until.as_millis();
    budget.reopen_if_due(at(open));

    budget.take(ticket(1), 8, now(open + 700));

    let blocked = check(&mut budget, 1, at(open + 900)).unwrap_err();
    assert_eq!(blocked.until, Some(at(open + 1_100)));
    assert!(check(&mut budget, 1, at(open + 1_100)).is_ok());
}

#[test]
fn a_cost_above_a_lowered_limit_is_counted_whole() {
    let rule = |text| LimitRule::parse(text, Algorithm::ArrivalLog).unwrap();
    let config = |text| {
        let id = BudgetId::parse("b").unwrap();
        BudgetConfig::new(id, vec![rule(text)], None, 1_000, None).unwrap()
    };
    let mut budget = budget(&["2/s"], None);
    budget.take(ticket(1), 5, now(0));
    budget.answered(ticket(1), 10, at(10));

    budget.configure(config("5/s"), at(10));

    assert!(check(&mut budget, 1, at(10)).is_err());
    assert!(check(&mut budget, 5, at(1_011)).is_ok());
}

#[test]
fn what_follows_an_early_claim_is_judged_as_of_then() {
    let mut budget = budget(&["2/s"], None);
    for n in 0..2 {
        budget.take(ticket(n), 1, now(0));
        budget.answered(ticket(n), 10, at(n * 5));
    }
    assert!(ask(&mut budget, Lane::Interactive, 1, at(990), at(1_000)).is_err());

    let first = ask(&mut budget, Lane::Interactive, 1, at(990), at(1_010)).unwrap();
    budget.take(ticket(2), 1, now(first.as_millis()));
    let second = ask(&mut budget, Lane::Interactive, 1, at(990), at(1_010)).unwrap();

    assert_eq!((first, second), (at(1_001), at(1_006)));
}

#[test]
fn a_cost_above_a_new_rule_is_counted_whole_when_the_rule_grows() {
    let config = |text| {
        let rule = LimitRule::parse(text, Algorithm::ArrivalLog).unwrap();
        BudgetConfig::new(BudgetId::parse("b").unwrap(), vec![rule], None, 1_000, None).unwrap()
    };
    let mut budget = budget(&["5/s"], None);
    let spend = Spend {
        start: now(0).wall,
        end: now(10).wall,
        cost: 5,
        live: None,
    };
    let new = budget.configure(config("2/10s"), at(100));
    budget.seed(&new, &[spend], now(100));

    budget.configure(config("5/10s"), at(200));

    assert!(check(&mut budget, 1, at(300)).is_err());
}

#[test]
fn a_lane_whose_share_is_due_waits_for_neither_spacing_nor_the_reserve() {
    let id = BudgetId::parse("b").unwrap();
    let rules = vec![LimitRule::parse("40/10s", Algorithm::ArrivalLog).unwrap()];
    let config = BudgetConfig::new(id, rules, None, 1_000, None).unwrap();
    let mut budget = Budget::new(config.with_reserve(500).unwrap(), Mono::default());
    let bulk = (Rank::InTurn, Seq::from_u64(500));
    budget.lanes.insert(Lane::Bulk, bulk);
    for n in 0..20 {
        budget.take(ticket(n), 1, now(0));
        budget.started(Lane::Bulk, 1, at(0));
    }
    assert!(ask(&mut budget, Lane::Bulk, 1, at(0), at(0)).is_err());

    for n in 20..29 {
        budget.take(ticket(n), 1, now(0));
        budget.started(Lane::Interactive, 1, at(0));
    }

    assert_eq!(ask(&mut budget, Lane::Bulk, 1, at(0), at(0)), Ok(at(0)));
}

#[test]
fn a_batch_on_its_way_when_its_rest_changes_is_used_up_until_it_has_rested() {
    let config = |text| {
        let rule = LimitRule::parse(text, Algorithm::BatchRest).unwrap();
        BudgetConfig::new(BudgetId::parse("b").unwrap(), vec![rule], None, 1_000, None).unwrap()
    };
    let mut budget = Budget::new(config("3/1s"), Mono::default());
    let spend = |n: u64, end| Spend {
        start: now(0).wall,
        end: now(end).wall,
        cost: 1,
        live: (n > 0).then(|| ticket(n)),
    };
    for n in 0..2 {
        budget.take(ticket(n), 1, now(0));
    }
    budget.answered(ticket(0), 10, at(10));

    let new = budget.configure(config("3/500ms"), at(700));
    budget.seed(&new, &[spend(0, 10), spend(1, 15_500)], now(700));
    let during = check(&mut budget, 2, at(700));
    budget.answered(ticket(1), 800, at(800));

    assert!(during.is_err(), "the server may still count the first");
    assert!(check(&mut budget, 1, at(1_300)).is_err());
    assert_eq!(check(&mut budget, 3, at(1_301)), Ok(at(1_301)));
}

#[test]
fn a_batch_that_was_taken_over_rests_also_when_its_attempt_never_left() {
    let rule = LimitRule::parse("3/1s", Algorithm::BatchRest).unwrap();
    let mut batch = Limiter::new(rule, Mono::default());

    batch.take_over(ticket(1), 1, now(0));
    batch.give_back(ticket(1), 1, at(5));

    assert_eq!(batch.free(at(1_001)), 3);
}
