//! Transfers on an empty link, worked out by hand.

use tidegate_sim::metrics::PacketEvent;

use super::runs::run;

fn link(request: &str, size: u64) -> String {
    format!(
        r#"
        title = "one transfer"
        duration = "10 s"
        disciplines = ["fifo"]
        [[link]]
        from = "a"
        to = "b"
        rate = "10 Mbit/s"
        delay = "20 ms"
        queue = "tested"
        buffer = "1000 packets"
        back.queue = "tested"
        [[traffic.quic]]
        name = "one"
        from = "a"
        to = "b"
        count = 1
        {request}
        sizes = "{size} B"
        "#
    )
}

#[test]
fn look() {
    for request in ["", "request = '400 B'"] {
        let (summary, rows) = run(&link(request, 3_000), 1);
        for row in &rows.packets {
            if row.event == PacketEvent::Sent {
                println!(
                    "{:?} link {} size {} {:?}",
                    row.at, row.link, row.packet.size.0, row.packet.ecn
                );
            }
        }
        println!("{:?} {}", rows.flows, summary.events);
    }
}
