//! The vectors that the field knows, from the one file that the strict server is held to as well.

use paceline_core::config::{Algorithm, Anchor, LimitRule};
use paceline_core::ids::Seq;
use paceline_core::limit::{Admission, Limiter};
use paceline_core::time::{Mono, Now};
use serde_json::{Value, json};

const GOLDEN: &str = include_str!("../../../tests/fixtures/golden.json");

fn vectors(kind: &str) -> Vec<Value> {
    let golden: Value = serde_json::from_str(GOLDEN).expect("the vectors");
    golden[kind].as_array().expect("a list").clone()
}

fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().expect("a number")
}

fn algorithm(name: &str) -> Algorithm {
    Algorithm::parse(name).expect("an algorithm")
}

fn limiter(vector: &Value, algorithm: Algorithm) -> Limiter {
    let rule = LimitRule::new(
        number(vector, "limit"),
        number(vector, "window_ms"),
        algorithm,
    );
    let rule = rule.expect("a rule").anchored(Anchor::Clock);
    Limiter::new(rule, Mono::default())
}

/// Sends one arrival, which is answered at once, and says it in the file's own form.
fn arrive(limiter: &mut Limiter, nth: u64, cost: u32, at_ms: u64) -> Value {
    let mono = Mono::from_millis(at_ms);
    match limiter.check(cost, mono) {
        Admission::Admit => {
            let ticket = (Seq::from_u64(nth), 1);
            limiter.take(ticket, cost, Now::from_millis(at_ms, at_ms));
            limiter.end(ticket, 0, mono);
            json!({ "left": limiter.free(mono) })
        }
        Admission::Defer(until) => json!({ "wait_ms": until.as_millis() - at_ms }),
        Admission::DeferToAnswer | Admission::Never => Value::Null,
    }
}

#[test]
fn each_algorithm_admits_as_many_as_the_vectors_say() {
    for vector in vectors("passes") {
        for (name, admitted) in vector["admitted"].as_object().expect("counts") {
            let mut limiter = limiter(&vector, algorithm(name));
            let runs = vector["arrivals"].as_array().expect("runs");
            let instants = runs.iter().flat_map(|run| {
                let (from, every) = (number(run, "from_ms"), number(run, "every_ms"));
                (0..number(run, "times")).map(move |nth| from + nth * every)
            });

            let passed = (1..)
                .zip(instants)
                .filter(|(nth, at_ms)| arrive(&mut limiter, *nth, 1, *at_ms)["left"].is_u64())
                .count();

            assert_eq!(json!(passed), *admitted, "{}: {name}", vector["name"]);
        }
    }
}

#[test]
fn each_algorithm_answers_each_arrival_as_the_vectors_say() {
    for vector in vectors("answers") {
        for name in vector["algorithms"].as_array().expect("names") {
            let mut limiter = limiter(&vector, algorithm(name.as_str().expect("a name")));
            let arrivals = vector["arrivals"].as_array().expect("arrivals");

            for (nth, arrival) in (1..).zip(arrivals) {
                let cost = u32::try_from(number(arrival, "cost")).expect("a small cost");
                let answer = arrive(&mut limiter, nth, cost, number(arrival, "at_ms"));

                let (left, wait_ms) = (&arrival["left"], &arrival["wait_ms"]);
                assert_eq!(
                    (&answer["left"], &answer["wait_ms"]),
                    (left, wait_ms),
                    "{}: {name}, arrival {nth}",
                    vector["name"]
                );
            }
        }
    }
}
