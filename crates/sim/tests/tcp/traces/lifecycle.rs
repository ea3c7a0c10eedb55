//! How connections begin and end.

use tidegate_core::Span;
use tidegate_sim::tcp::{Flags, State, TcpConfig};

use super::{MSS, millis, pair, plain, selective, timed, whole};
use crate::pair::{CLIENT, Fate, ISN, Pair, SERVER};

/// RFC 6298 (5.7) and RFC 5681 section 3.1, with an initial timeout of 1 s and
/// an initial window of 4: the SYN is sent again after 1 s and 2 s more, then
/// one segment goes out instead of four, and with it lost, its timer takes 3 s
/// (3 100 to 6 100 ms), not the 1 s it began with.
#[test]
fn a_lost_syn_makes_a_careful_start() {
    let config = TcpConfig { initial_rto: Span::seconds(1), ..plain(4) };
    let mut syns = 0;
    let mut pair = pair(&config).transfer(3 * MSS).deciding(move |from, header, number| {
        syns += u32::from(from == CLIENT && header.flags.contains(Flags::SYN));
        let syn_lost = syns <= 2 && header.flags.contains(Flags::SYN);
        let first_lost = from == CLIENT && header.payload > 0 && number == 1;
        if syn_lost || first_lost { Fate::Lose } else { Fate::Pass }
    });
    insta::assert_snapshot!(whole(&mut pair), @r"
       0.000 > SYN LOST                cwnd 4.00
    1000.000 client timer
    1000.000 > SYN LOST                cwnd 4.00
    3000.000 client timer
    3000.000 > SYN                     cwnd 4.00
    3050.000 < SYN ack 1
    3100.000 > ack 1                   cwnd 1.00
    3100.000 > data 1 LOST             cwnd 1.00
    6100.000 client timer
    6100.000 > data 1                  cwnd 1.00 ssthresh 2.00
    6150.000 < ack 2
    6200.000 > data 2                  cwnd 2.00 ssthresh 2.00
    6200.000 > FIN data 3              cwnd 2.00 ssthresh 2.00
    6250.000 < ack 3
    6250.000 < ack b4382
    6250.000 < FIN ack b4382
    6300.000 > ack b2                  cwnd 2.00 ssthresh 2.00
    ");
}

/// The SYN-ACK is lost: the client's timer sends the SYN again after 3 s, which
/// the server answers; that puts off the server's own timer, due at 3 050 ms.
#[test]
fn a_lost_syn_ack_is_sent_again() {
    let mut answers = 0;
    let mut pair = pair(&plain(2)).transfer(MSS).deciding(move |from, header, _| {
        answers += u32::from(from == SERVER && header.flags.contains(Flags::SYN));
        let lost = from == SERVER && header.flags.contains(Flags::SYN) && answers == 1;
        if lost { Fate::Lose } else { Fate::Pass }
    });
    insta::assert_snapshot!(whole(&mut pair), @r"
       0.000 > SYN                     cwnd 2.00
      50.000 < SYN ack 1 LOST
    3000.000 client timer
    3000.000 > SYN                     cwnd 2.00
    3050.000 < SYN ack 1
    3100.000 > ack 1                   cwnd 1.00
    3100.000 > FIN data 1              cwnd 1.00
    3150.000 < ack b1462
    3150.000 < FIN ack b1462
    3200.000 > ack b2                  cwnd 1.00
    ");
}

/// RFC 9293 figure 12: the client closes, the server a moment later. The last
/// acknowledgement of the client is answered from TIME-WAIT.
#[test]
fn a_close_takes_both_directions() {
    let mut pair = pair(&plain(2)).transfer(MSS);
    insta::assert_snapshot!(whole(&mut pair), @r"
      0.000 > SYN                     cwnd 2.00
     50.000 < SYN ack 1
    100.000 > ack 1                   cwnd 2.00
    100.000 > FIN data 1              cwnd 2.00
    150.000 < ack b1462
    150.000 < FIN ack b1462
    200.000 > ack b2                  cwnd 2.00
    ");
    assert_eq!(pair.ends[CLIENT].state(), State::TimeWait);
    assert_eq!(pair.ends[SERVER].state(), State::Closed);
    assert!(pair.ends.iter().all(|end| end.is_closed() && !end.has_failed()));
}

/// RFC 9293 figure 13: both FINs cross, both ends go through CLOSING.
#[test]
fn both_may_close_at_once() {
    let mut pair = pair(&plain(2)).upload(0);
    pair.run_until(millis(200));
    pair.trace.clear();
    pair.now = millis(200);
    for end in [CLIENT, SERVER] {
        pair.ends[end].close();
        pair.poll(end);
    }
    pair.run_until(millis(220));
    assert!(pair.ends.iter().all(|end| end.state() == State::FinWait1));
    insta::assert_snapshot!(whole(&mut pair), @r"
    200.000 > FIN ack 1               cwnd 2.00
    200.000 < FIN ack 1
    250.000 < ack b2
    250.000 > ack b2                  cwnd 2.00
    ");
    assert!(pair.ends.iter().all(|end| end.state() == State::TimeWait && end.is_closed()));
}

/// The client's FIN is lost once and the server's twice: the timers send them
/// again, 1 s and 1 + 2 s later, and TIME-WAIT acknowledges.
#[test]
fn lost_fins_are_sent_again() {
    let mut fins = [0, 0];
    let mut pair = pair(&plain(2)).transfer(MSS).deciding(move |from, header, _| {
        let fin = header.flags.contains(Flags::FIN);
        fins[from] += u32::from(fin);
        if fin && fins[from] <= [1, 2][from] { Fate::Lose } else { Fate::Pass }
    });
    insta::assert_snapshot!(whole(&mut pair), @r"
       0.000 > SYN                     cwnd 2.00
      50.000 < SYN ack 1
     100.000 > ack 1                   cwnd 2.00
     100.000 > FIN data 1 LOST         cwnd 2.00
    1100.000 client timer
    1100.000 > FIN data 1              cwnd 1.00 ssthresh 2.00
    1150.000 < ack b1462
    1150.000 < FIN ack b1462 LOST
    2150.000 server timer
    2150.000 < FIN ack b1462 LOST
    4150.000 server timer
    4150.000 < FIN ack b1462
    4200.000 > ack b2                  cwnd 1.00 ssthresh 2.00
    ");
    assert!(pair.ends.iter().all(tidegate_sim::tcp::Endpoint::is_closed));
}

/// The same transfer with losses from just below the wrap of either end's
/// numbers looks the same in every line.
#[test]
fn numbers_may_wrap() {
    for config in [plain(8), selective(8), timed(8)] {
        let trace = |isn| {
            let mut pair = Pair::with_numbers(config.clone(), config.clone(), isn)
                .transfer(40 * MSS)
                .losing(&[3, 9, 10, 15, 22]);
            whole(&mut pair)
        };
        let near = trace([1, 1]);
        assert_eq!(trace([u32::MAX - 20_000, u32::MAX]), near);
        assert_eq!(trace([u32::MAX, u32::MAX - 1]), near);
        assert_eq!(trace([1 << 31, (1 << 31) - 30_000]), near);
    }
}

/// RFC 5961 section 3: a reset with the number that is expected ends the
/// connection; one elsewhere in the window is answered; others are ignored.
#[test]
fn only_an_exact_reset_resets() {
    for (distance, answers, fails) in [(0, 0, true), (1, 1, false), (1 << 30, 0, false)] {
        let mut pair = pair(&plain(2)).upload(4 * MSS);
        pair.run();
        let reset = tidegate_sim::tcp::Header {
            sequence: (ISN[CLIENT] + 1 + 4 * MSS as u32).wrapping_add(distance),
            flags: Flags::RST,
            ..Default::default()
        };
        let mut out = Vec::new();
        pair.ends[SERVER].on_segment(pair.now, &reset, false, &mut out);
        assert_eq!((out.len(), pair.ends[SERVER].has_failed()), (answers, fails), "{distance}");
    }
}
