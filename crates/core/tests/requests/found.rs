//! What [a search](super::adversaries) of several hours found: seeds, and the cases that they
//! shrank to. What has been mended since is held, and what has not is no worse than it was.

use super::adversaries::{Behaviour, Case, Model, Outcome, User, judge, windows};

/// The seed, the weights, the rate in kilobits a second, who is honest, the others, what
/// has to be used of the link, and the part that may be left idle while somebody waits.
type Found<'a> = (u64, [u32; 3], u64, User, &'a [User], f64, f64);

/// A user with a round trip in milliseconds.
fn user(class: u32, round_trip: u64, behaviour: Behaviour) -> User {
    User { class, behaviour, round_trip: round_trip / 5 }
}

fn greedy(requests: usize, size: u64) -> Behaviour {
    Behaviour::Greedy { requests, size }
}

fn aborting(requests: usize, size: u64, steps: u64) -> Behaviour {
    Behaviour::Aborting { requests, size, steps }
}

fn pausing(requests: usize, size: u64, steps: u64) -> Behaviour {
    Behaviour::Pausing { requests, size, steps }
}

fn changing(requests: usize, size: u64, steps: u64) -> Behaviour {
    Behaviour::Changing { requests, size, steps }
}

fn silent(requests: usize, after: u64) -> Behaviour {
    Behaviour::Silent { requests, after }
}

/// The first twelve used less than 0.9 when they were found. In five of them, nobody waits
/// while the link is idle: servers are as fast as handshakes and slow start let them be.
#[test]
fn what_a_search_has_found_is_no_worse_than_it_was() {
    let one = [1, 1, 1];
    let trickling = Behaviour::Trickling { requests: 7, rate: 9_600 };
    let found: [Found; 12] = [
        (
            11,
            one,
            27_313,
            user(0, 155, greedy(8, 710_112)),
            &[user(0, 10, pausing(1, 1, 1))],
            0.83,
            0.01,
        ),
        (
            14,
            one,
            1_000,
            user(0, 10, greedy(8, 25_000)),
            &[user(0, 10, aborting(48, 5, 274)), user(0, 10, greedy(1, 1))],
            0.9,
            0.095,
        ),
        (
            22,
            [3, 3, 1],
            3_061,
            user(0, 55, greedy(8, 134_464)),
            &[
                user(0, 245, silent(61, 41_559)),
                user(0, 50, silent(17, 18_155)),
                user(0, 235, silent(18, 22_338)),
                user(0, 370, pausing(18, 643, 13)),
            ],
            0.93,
            0.064,
        ),
        (
            28,
            one,
            35_583,
            user(0, 145, greedy(8, 933_870)),
            &[
                user(0, 75, silent(5, 49_085)),
                user(0, 60, pausing(1, 77, 11)),
                user(0, 140, silent(4, 10_339)),
            ],
            0.84,
            0.01,
        ),
        (
            64,
            one,
            9_224,
            user(0, 15, greedy(11, 254_813)),
            &[user(0, 195, aborting(47, 80_922, 464)), user(0, 225, pausing(58, 1_395, 27))],
            0.94,
            0.053,
        ),
        (
            65,
            one,
            47_244,
            user(0, 160, greedy(9, 1_281_385)),
            &[user(0, 10, greedy(1, 1))],
            0.78,
            0.01,
        ),
        (
            85,
            [1, 3, 1],
            2_634,
            user(0, 10, greedy(8, 65_800)),
            &[
                user(1, 275, trickling),
                user(0, 355, aborting(12, 590, 405)),
                user(0, 10, aborting(18, 1, 1)),
            ],
            0.909,
            0.091,
        ),
        (
            99,
            one,
            73_282,
            user(0, 120, greedy(8, 2_125_120)),
            &[user(0, 210, aborting(12, 2_223, 162))],
            0.81,
            0.01,
        ),
        (
            100,
            one,
            32_256,
            user(0, 125, greedy(8, 826_560)),
            &[user(0, 10, pausing(2, 1_177, 1))],
            0.88,
            0.01,
        ),
        (
            111,
            [1, 3, 3],
            95_630,
            user(0, 10, greedy(8, 2_390_600)),
            &[user(1, 75, aborting(2, 1, 28))],
            0.99,
            0.01,
        ),
        (
            142,
            [4, 1, 5],
            1_000,
            user(0, 45, greedy(8, 25_000)),
            &[
                user(0, 25, silent(12, 20_476)),
                user(0, 10, pausing(50, 1, 1)),
                user(0, 10, pausing(1, 1, 1)),
            ],
            0.95,
            0.043,
        ),
        (
            167,
            [4, 1, 1],
            6_651,
            user(1, 10, greedy(8, 166_200)),
            &[user(0, 75, aborting(38, 1, 285)), user(0, 120, aborting(35, 35_595, 536))],
            0.98,
            0.019,
        ),
    ];
    let since: [Found; 4] = [
        (
            22,
            [5, 1, 1],
            1_000,
            user(1, 10, greedy(8, 25_000)),
            &[user(0, 115, changing(10, 11_489, 322))],
            0.95,
            0.042,
        ),
        (
            46,
            one,
            1_000,
            user(0, 10, greedy(8, 25_000)),
            &[
                user(0, 30, silent(20, 28_135)),
                user(0, 10, changing(9, 1, 1)),
                user(0, 110, silent(22, 30_412)),
            ],
            0.92,
            0.076,
        ),
        (
            56,
            [4, 7, 1],
            1_134,
            user(0, 10, greedy(8, 28_200)),
            &[
                user(0, 250, greedy(3, 43_247)),
                user(0, 70, silent(17, 37_521)),
                user(0, 95, changing(10, 147, 26)),
            ],
            0.96,
            0.035,
        ),
        (
            84,
            one,
            1_000,
            user(0, 50, greedy(8, 40_875)),
            &[
                user(0, 55, aborting(9, 1, 148)),
                user(0, 10, greedy(1, 102)),
                user(0, 10, aborting(6, 515, 2)),
            ],
            0.98,
            0.013,
        ),
    ];
    no_worse(found.into_iter().chain(since), |case| vec![Model::new(case).run(case)]);
}

/// Cases use more of the link than they have to, and leave less idle while somebody waits,
/// in each window.
fn no_worse<'a>(found: impl Iterator<Item = Found<'a>>, windows: fn(&Case) -> Vec<Outcome>) {
    let mut worse = Vec::new();
    for (seed, weights, rate, honest, others, least, most) in found {
        let (honest, others) = (vec![honest], others.to_vec());
        let case = Case { weights: weights.to_vec(), rate, honest, others };
        let outcomes = windows(&case);
        let used = outcomes.iter().map(|outcome| outcome.used).fold(1.0, f64::min);
        let missed = outcomes.iter().map(|outcome| outcome.missed).fold(0.0, f64::max);
        println!("seed {seed}: {used:.3} used, {missed:.3} idle while somebody waits");
        if used <= least || missed >= most {
            worse.push((seed, used, missed));
        }
    }
    assert!(worse.is_empty(), "{worse:?}");
}

/// What three hours of the search among few users found: more than a tenth of the link was idle
/// while somebody waited, in the worst of five windows. Four leave less than that by now: two
/// since weights count where responses are read, two since many hungry ones share their floor.
#[test]
fn what_leaves_a_tenth_idle_leaves_no_more_than_it_did() {
    let trickling = |requests, rate| Behaviour::Trickling { requests, rate };
    let lingering =
        |requests, size, steps, rate| Behaviour::Lingering { requests, size, steps, rate };
    let found: [Found; 3] = [
        (
            28,
            [6, 1, 1],
            13_178,
            user(0, 100, greedy(8, 3_121_065)),
            &[user(0, 25, changing(18, 19_964, 45)), user(0, 295, silent(1, 2_101))],
            0.9,
            0.098,
        ),
        (
            30,
            [1, 4, 2],
            1_629,
            user(0, 10, greedy(12, 98_455)),
            &[user(1, 95, trickling(38, 2_200))],
            0.892,
            0.108,
        ),
        (
            51,
            [4, 2, 3],
            3_165,
            user(1, 90, greedy(8, 583_415)),
            &[user(2, 20, trickling(33, 7_400))],
            0.91,
            0.083,
        ),
    ];
    let since: [Found; 7] = [
        (
            28,
            [6, 1, 1],
            14_885,
            user(0, 165, greedy(8, 1_895_340)),
            &[user(0, 50, changing(26, 22_911, 55)), user(1, 290, trickling(2, 13_000))],
            0.897,
            0.103,
        ),
        (
            30,
            [1, 4, 2],
            1_905,
            user(2, 35, greedy(8, 114_716)),
            &[user(0, 10, greedy(8, 114_716)), user(1, 75, trickling(41, 2_000))],
            0.912,
            0.088,
        ),
        (
            58,
            [1, 1, 1],
            1_723,
            user(0, 140, greedy(11, 43_215)),
            &[
                user(0, 195, pausing(86, 27, 347)),
                user(0, 35, changing(66, 10_761, 192)),
                user(0, 10, silent(1, 28_317)),
            ],
            0.893,
            0.107,
        ),
        (
            71,
            [1, 1, 1],
            69_677,
            user(0, 20, greedy(10, 10_346_292)),
            &[
                user(0, 85, silent(1, 3_865)),
                user(0, 325, greedy(1, 3_132_768)),
                user(0, 10, greedy(1, 200)),
            ],
            0.898,
            0.102,
        ),
        (
            89,
            [1, 1, 1],
            50_340,
            user(0, 100, greedy(8, 8_192_184)),
            &[user(0, 370, lingering(1, 3_316_649, 19, 1_400))],
            0.898,
            0.102,
        ),
        (
            93,
            [1, 3, 2],
            4_453,
            user(2, 110, greedy(8, 816_764)),
            &[user(1, 10, trickling(31, 11_800))],
            0.902,
            0.098,
        ),
        (
            254,
            [1, 1, 1],
            52_784,
            user(0, 30, greedy(8, 9_224_004)),
            &[user(0, 310, greedy(1, 3_165_665)), user(0, 10, silent(1, 1_713))],
            0.898,
            0.102,
        ),
    ];
    no_worse(found.into_iter().chain(since), |case| windows(&mut Model::new(case), case));
}

/// The farther one had 0.225, when what all responses bring in the mean was charged at a
/// release.
#[test]
fn who_is_farther_away_and_has_smaller_responses_gets_no_less() {
    for size in [44_000, 47_632, 60_000] {
        let honest = vec![user(0, 140, greedy(11, size)), user(2, 15, greedy(13, 81_982))];
        let case = Case { weights: vec![3, 1, 7], rate: 1_838, honest, others: Vec::new() };
        let Outcome { received, .. } = Model::new(&case).run(&case);
        let share = received[0] as f64 / received.iter().sum::<u64>() as f64;
        println!("{size} B: {share:.4}");
        assert!((share - 0.3).abs() < 0.015, "{size}: {share}");
    }
}

/// Who has downloads waits for a round trip now and then, and in that moment a response of a
/// third of a second went first: one user had 0.20 in the first of these, and 0.06 in the last.
#[test]
fn downloads_keep_their_share_beside_responses_of_a_third_of_a_second() {
    for (downloads, round_trip, responses, least) in
        [(11, 25, 19, 0.45), (11, 10, 19, 0.4), (11, 25, 8, 0.45), (1, 25, 8, 0.3)]
    {
        let honest = vec![user(0, round_trip, greedy(downloads, 18_437_160))];
        let others = vec![user(0, 10, greedy(responses, 3_576_291))];
        let case = Case { weights: vec![1, 1, 1], rate: 89_667, honest, others };
        for Outcome { received, .. } in windows(&mut Model::new(&case), &case) {
            let share = received[0] as f64 / received.iter().sum::<u64>() as f64;
            println!("{downloads} over {round_trip} ms beside {responses}: {share:.3}");
            assert!(share > least, "{downloads} over {round_trip} ms: {share}");
        }
    }
}

/// The first of two alike had 0.36 instead of 0.45, for the same reason.
#[test]
fn of_two_who_download_beside_one_who_trickles_both_have_their_shares() {
    let lingering = Behaviour::Lingering { requests: 1, size: 171_257, steps: 3_178, rate: 3_400 };
    let honest = vec![user(0, 15, greedy(8, 525_711)), user(0, 25, greedy(9, 844_284))];
    let case = Case {
        weights: vec![5, 4, 1],
        rate: 10_489,
        honest,
        others: vec![user(2, 150, lingering)],
    };
    for Outcome { received, .. } in windows(&mut Model::new(&case), &case) {
        let share = received[0] as f64 / received.iter().sum::<u64>() as f64;
        assert!(share > 0.43, "{share}");
    }
}

/// The greedy one had nothing for as long as the one who pauses had been away.
#[test]
fn a_slow_response_holds_nobody_back_who_comes_or_who_stays() {
    let greedy = user(0, 20, greedy(8, 25_000));
    let trickling = Behaviour::Trickling { requests: 1, rate: 12_000 };
    let lingering = Behaviour::Lingering { requests: 8, size: 25_000, steps: 12_000, rate: 12_000 };
    let others = [
        vec![user(0, 20, pausing(8, 25_000, 12_000)), user(0, 100, trickling)],
        vec![user(0, 20, lingering)],
    ];
    for others in others {
        let case = Case { weights: vec![1, 1, 1], rate: 2_000, honest: vec![greedy], others };
        assert!(judge(&case).is_ok(), "{:?}: {case:?}", judge(&case));
    }
}

/// A user of weight 4 pauses for 5 s at a time, beside a response that trickles, and may be
/// behind by a lead, of 2 s of the link, in one moment and ahead by one in another. One of two
/// users of weight 1 has 0.78 of what is due in the worst minute, and 0.82 where weights do not
/// count in the order of responses.
#[test]
fn beside_a_heavy_user_who_pauses_a_light_one_is_behind_by_no_more_than_leads() {
    let lingering = Behaviour::Lingering { requests: 73, size: 3_276_488, steps: 1_090, rate: 200 };
    let honest = vec![user(0, 80, greedy(11, 10_882_740)), user(0, 65, greedy(8, 1_499_000))];
    let others = vec![user(2, 335, lingering)];
    let case = Case { weights: vec![1, 1, 4], rate: 47_968, honest, others };
    for Outcome { received, .. } in windows(&mut Model::new(&case), &case) {
        let carried: u64 = received.iter().sum();
        let part = |user: usize| 6.0 * received[user] as f64 / carried as f64;
        assert!(part(0) > 0.86 && part(1) > 0.78, "{} {}", part(0), part(1));
    }
}
