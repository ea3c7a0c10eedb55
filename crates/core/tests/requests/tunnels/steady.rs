//! Tunnels that carry little for long.

use super::*;

#[test]
fn a_steady_low_rate_is_exempt_until_it_is_not_low() {
    let mut desk = Desk::new();
    let tunnel = desk.open();
    // 8 kB in each second, which is the most; the first second is not over then.
    for _ in 0..STEADY_SECONDS {
        assert_ne!(desk.phase(tunnel), Exempt);
        desk.read(tunnel, 4_000);
        desk.read(tunnel, 1_000);
        desk.wait(Span::seconds(1));
    }
    desk.read(tunnel, 5_000);
    assert_eq!(desk.phase(tunnel), Exempt);
    assert_eq!(desk.read(tunnel, 3_000), Reading::Freely);
    assert_eq!((desk.phase(tunnel), desk.proxy.held()), (Exempt, 0));
    // A byte more is a response.
    desk.read(tunnel, 1);
    assert_eq!(desk.phase(tunnel), Active);
}

#[test]
fn a_low_rate_with_a_pause_is_not_steady() {
    let mut desk = Desk::new();
    let tunnel = desk.open();
    for second in 0..40 {
        if second % 10 != 9 {
            desk.read(tunnel, 100);
        }
        desk.wait(Span::seconds(1));
        assert_ne!(desk.phase(tunnel), Exempt);
    }
}

#[test]
fn a_long_response_that_trickles_by_grants_is_not_exempt() {
    let given = [ONE_PLACE, &[("grant", "1 kB")]].concat();
    let mut desk = Desk::with(&given);
    let tunnel = desk.active();
    desk.read(tunnel, 6_000);
    for _ in 0..30 {
        desk.actions();
        desk.proxy.tunnel_came(desk.now, tunnel, Bytes(50_000));
        desk.read(tunnel, 1_000);
        assert_ne!(desk.phase(tunnel), Exempt);
        desk.wait(Span::seconds(1));
    }
}
