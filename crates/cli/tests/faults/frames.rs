//! Frames of all kinds, and frames that contradict themselves.
//!
//! A link is no firewall: what comes in at one end comes out at the other, byte by byte, and
//! hosts judge it. The only frames that may be missing are those that the kernel itself gives
//! up on before anybody has them, with a tag that ends before it should.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::cable::{Cable, HOST, ethernet, receive, udp, udp6};
use crate::hosts::Form;
use crate::network::setting;

const ADDRESSES: [[u8; 4]; 2] = [[203, 0, 113, 9], HOST];
const VLAN: [u8; 4] = [0x81, 0, 0x20, 5];
const SERVICE_VLAN: [u8; 4] = [0x88, 0xa8, 0, 7];
/// Frames between two good ones, few enough for the rate.
const BATCH: usize = 20;

/// A frame that should pass, of the kind of this number.
fn good(number: usize) -> Vec<u8> {
    let payload = vec![number as u8; 50 + number % 900];
    let v4 = || udp(ADDRESSES, [1, number as u16], &payload);
    match number % 7 {
        0 => [ethernet(&[], 0x800), v4()].concat(),
        1 => [ethernet(&[VLAN], 0x800), v4()].concat(),
        2 => [ethernet(&[SERVICE_VLAN, VLAN], 0x800), v4()].concat(),
        3 => [ethernet(&[], 0x86dd), udp6([1, 2], &payload)].concat(),
        4 => [ethernet(&[VLAN], 0x86dd), udp6([1, 2], &payload)].concat(),
        5 => {
            // The first fragment of a datagram, and one in its middle.
            let mut packet = v4();
            packet[6..8].copy_from_slice(&[0x20, (number % 2) as u8 * 100]);
            [ethernet(&[], 0x800), packet].concat()
        }
        // ARP.
        _ => [ethernet(&[], 0x806), vec![1; 28]].concat(),
    }
}

/// A frame that contradicts itself.
fn bad(random: &mut impl Rng) -> Vec<u8> {
    let mut bytes = |most: usize| -> Vec<u8> {
        let count = random.random_range(0..most);
        (0..count).map(|_| random.random()).collect()
    };
    let noise = bytes(1_400);
    let mut frame = match random.random_range(0..8) {
        0 => [ethernet(&[], 0x800), noise].concat(),
        1 => [ethernet(&[], 0x86dd), noise].concat(),
        2 => [ethernet(&[], random.random()), noise].concat(),
        // A tower of tags, with something on top or not.
        3 => {
            let tags = vec![
                [VLAN, SERVICE_VLAN, [0x91, 0, 0, 1]][random.random_range(0..3)];
                random.random_range(1..300)
            ];
            [ethernet(&tags, 0x800), noise[..noise.len().min(200)].to_vec()].concat()
        }
        // PPPoE that may hold anything.
        4 => [ethernet(&[], 0x8864), noise].concat(),
        // Lengths, offsets and protocols that lie.
        kind => {
            let mut packet = match kind {
                5 => udp(ADDRESSES, [1, 2], &noise),
                6 => udp6([1, 2], &noise),
                _ => {
                    let mut packet = udp(ADDRESSES, [1, 2], &noise);
                    packet[9] = 6;
                    packet
                }
            };
            for _ in 0..random.random_range(1..4) {
                let at = random.random_range(0..packet.len().min(60));
                packet[at] = random.random();
            }
            let kind = if packet[0] >> 4 == 6 { 0x86dd } else { 0x800 };
            [ethernet(&[], kind), packet].concat()
        }
    };
    if random.random_bool(0.3) {
        frame.truncate(random.random_range(14..=frame.len()));
    }
    frame.truncate(1_514);
    frame
}

/// Whether the kernel may give up on it: it takes a tag out before it hands a frame over, and
/// for that wants the tag and two bytes behind it.
fn is_cut_in_its_tag(frame: &[u8]) -> bool {
    let kinds = [[0x81, 0], [0x88, 0xa8]];
    frame.len() < 20 && kinds.iter().any(|kind| frame[12..14] == *kind)
}

#[test]
fn whatever_comes_in_comes_out_byte_by_byte() {
    let Some(cable) = Cable::new("frames", Form::Between) else { return };
    let rates = ["--down", "200 Mbit/s", "--up", "200 Mbit/s", "--buffer", "300 packets"];
    let link = cable.network.run(&[&["lan0", "wan0"][..], &rates].concat()).unwrap();
    let mut random = Pcg64::seed_from_u64(4);
    let rounds = setting("TIDEGATE_FRAME_ROUNDS", 150) as usize;
    let mut way: HashMap<Vec<u8>, i64> = HashMap::new();
    let (mut sent, mut cut, mut number) = (0, 0, 0);
    let mut buffer = vec![0; 70_000];
    for round in 0..rounds {
        let (from, to) = match round % 2 {
            0 => (&cable.outside, &cable.inside),
            _ => (&cable.inside, &cable.outside),
        };
        let mut expected = 0;
        for at in 0..BATCH {
            let frame = if at % 3 == 0 {
                number += 1;
                good(number)
            } else {
                bad(&mut random)
            };
            from.send(&frame).unwrap();
            sent += 1;
            if is_cut_in_its_tag(&frame) {
                cut += 1;
                continue;
            }
            expected += 1;
            *way.entry(frame).or_default() += 1;
        }
        for _ in 0..expected {
            let Some(frame) = receive(to, &mut buffer, Duration::from_secs(2)) else { break };
            let count = way.get_mut(frame).unwrap_or_else(|| panic!("nobody sent {frame:02x?}"));
            *count -= 1;
        }
        way.retain(|_, count| *count != 0);
        let missing = way.iter().next().map(|(frame, _)| frame);
        assert!(
            missing.is_none(),
            "round {round}: {} do not come: {missing:02x?}; {}",
            way.len(),
            cable.network.status()
        );
    }
    let status = cable.network.status();
    let sum = |group: &str, key: &str| -> u64 {
        status["queues"].as_array().unwrap().iter().map(|it| it[group][key].as_u64().unwrap()).sum()
    };
    assert_eq!(sum("counts", "arrived_packets") + cut, sent, "{status}");
    assert_eq!(sum("counts", "sent_packets") + cut, sent, "{status}");
    let [malformed, other] = [sum("failures", "malformed_frames"), sum("counts", "other_frames")];
    println!(
        "frames: {sent} of them, {cut} given up by the kernel, {malformed} malformed, {other} not IP; \
         {:.1} MB resident at most",
        link.memory().most as f64 / 1e6
    );
    assert!(malformed > 100 && other > 100, "{status}");
    for key in ["unreadable_frames", "missed_frames", "no_memory_packets", "unsent_packets"] {
        assert_eq!(sum("failures", key), 0, "{key}: {status}");
    }
    link.stop(&cable.network);
    cable.network.assert_clean("malformed frames");
}

#[test]
fn jumbo_frames_pass_and_one_too_large_for_the_other_end_is_counted() {
    let Some(cable) = Cable::new("jumbo", Form::Between) else { return };
    for name in ["lan0", "wan0"] {
        cable.network.ip(&format!("link set dev {name} mtu 9000"));
    }
    let link = cable.network.run(&["lan0", "wan0", "--down", "50mbit", "--up", "50mbit"]).unwrap();
    let jumbo = |tags: &[[u8; 4]]| {
        [ethernet(tags, 0x800), udp(ADDRESSES, [1, 2], &[9; 9_000 - 28])].concat()
    };
    let mut buffer = vec![0; 70_000];
    for tags in [&[][..], &[VLAN]] {
        cable.outside.send(&jumbo(tags)).unwrap();
        let came = receive(&cable.inside, &mut buffer, Duration::from_secs(2));
        assert!(came == Some(&*jumbo(tags)), "{:02x?}", came.map(|frame| &frame[..60]));
    }
    cable.network.ip("link set dev lan0 mtu 1500");
    cable.outside.send(&jumbo(&[])).unwrap();
    assert_eq!(receive(&cable.inside, &mut buffer, Duration::from_millis(300)), None);
    let small = good(7);
    cable.outside.send(&small).unwrap();
    assert_eq!(receive(&cable.inside, &mut buffer, Duration::from_secs(2)), Some(&*small));
    thread::sleep(Duration::from_millis(50));
    let status = cable.network.status();
    assert_eq!(status["queues"][0]["failures"]["unsent_packets"], 1, "{status}");
    link.stop(&cable.network);
    cable.network.assert_clean("jumbo frames");
}
