//! What the learned floor holds when the way to the server changes, over many seeds of a fake clock.

mod kit;

use kit::{World, budget, card};
use oorandom::Rand64;

fn spread(seed: u64, low: u64, high: u64) -> impl FnMut() -> u64 {
    let mut rng = Rand64::new(u128::from(seed));
    move || rng.rand_range(low..high + 1)
}

#[test]
fn a_server_that_comes_nearer_in_mid_run_never_sees_more_than_its_limit() {
    for seed in 0..200 {
        let mut world = World::with(budget("api", &["50/1s"], None), seed);
        let mut far = spread(seed, 110, 130);
        let mut sent = 0;
        world.latency = Box::new(move || {
            sent += 1;
            let millis = if sent < 300 { far() } else { 8 };
            (millis / 2, millis - millis / 2)
        });
        world.server.limit = Some((50, 1_000));

        world.enqueue((0..500).map(|n| card(&format!("j{n}"))).collect());
        world.run(60_000);

        assert!(world.server.max_seen(1_000) <= 50, "seed {seed}");
        assert_eq!(world.server.refused(), 0, "seed {seed}");
    }
}
