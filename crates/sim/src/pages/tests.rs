//! Plans from recordings and tables, and pages that follow them.

use super::*;
use crate::trace::PageOutline;

fn request(at: u64, took: u64, host: &str, size: u64) -> PageRequest {
    PageRequest {
        at: Time(at * 1_000_000),
        took: Span::millis(took),
        host: host.into(),
        size: Bytes(size),
        ..PageRequest::default()
    }
}

fn recorded(requests: Vec<PageRequest>) -> Plan {
    let page = PageLoad { name: "p".into(), requests, ..PageLoad::default() };
    Plan::of_recording(&page, &mut Sites::default()).expect("it has objects")
}

/// Asks for a page whose objects take as long as `took` says, in milliseconds;
/// when each was asked for.
fn asked(plan: Plan, took: impl Fn(usize) -> u64) -> Vec<u64> {
    let mut asked = vec![0; plan.objects.len()];
    let mut turns = Turns::new(&plan, 0..plan.hosts.len(), AT_ONCE);
    let mut page = Loading::new(Arc::new(plan));
    // Moments, objects, and whether they end.
    let mut events: Vec<(u64, usize, bool)> = Vec::new();
    let mut now = 0;
    loop {
        while let Some((object, gap)) = page.next_due() {
            events.push((now + gap.0 / 1_000_000, object, false));
        }
        events.sort_by_key(|(at, object, ends)| std::cmp::Reverse((*at, *object, !ends)));
        let Some((at, object, ends)) = events.pop() else { break };
        now = at;
        let start = if ends {
            page.over(object);
            turns.over(&page, object)
        } else {
            turns.ask(&page, object).then_some(object)
        };
        if let Some(object) = start {
            asked[object] = now;
            events.push((now + took(object), object, true));
        }
    }
    assert!(page.is_over());
    asked
}

#[test]
fn a_recording_asks_for_an_object_after_those_that_had_come_before() {
    let plan = recorded(vec![
        request(0, 100, "a", 10),
        // The document is being read: it needs only a part of it.
        request(60, 80, "b", 20),
        // A redirection, over before the next one starts.
        request(110, 40, "a", 0),
        request(160, 10, "a", 30),
    ]);
    let objects: Vec<_> = plan.objects.iter().map(|o| (o.size.0, o.host, o.after)).collect();
    let after = After::Arrivals;
    assert_eq!(objects, [(10, 0, after(0)), (20, 1, after(0)), (30, 0, after(2))]);
    // As it was, and where each takes ten times as long.
    assert_eq!(asked(plan.clone(), |object| [100, 80, 10][object]), [0, 60, 160]);
    // The one at 60 is over at 860, 140 ms before the document; 20 ms later
    // than the later of the two the last is due.
    assert_eq!(asked(plan, |object| [1_000, 800, 100][object]), [0, 60, 1_020]);
}

#[test]
fn what_discovered_an_object_is_all_that_it_waits_for() {
    let found = |at, took, size, initiator| PageRequest {
        initiator: Some(initiator),
        ..request(at, took, "a", size)
    };
    let document =
        PageRequest { first_byte: Some(Span::millis(50)), ..request(0, 100, "a", 1_000) };
    let plan = recorded(vec![
        document,
        // Where half of the document had arrived, and 20 ms after all of it.
        found(75, 5, 10, 0),
        found(120, 30, 20, 0),
        // What another one discovered, while the second was on its way.
        found(140, 10, 30, 1),
    ]);
    assert_eq!(plan.discovers, [vec![(500, 1), (1_000, 2)], vec![(10, 3)], vec![], vec![]]);
    let mut page = Loading::new(Arc::new(plan));
    let due = |page: &mut Loading| std::iter::from_fn(|| page.next_due()).collect::<Vec<_>>();
    assert_eq!(due(&mut page), [(0, Span::ZERO)]);
    assert!(!page.arrived(0, 499) && page.next_due().is_none());
    assert!(page.arrived(0, 500) && !page.arrived(0, 999));
    assert_eq!(due(&mut page), [(1, Span::ZERO)]);
    // It waits for none of the others.
    page.over(1);
    assert_eq!(due(&mut page), [(3, Span::millis(60))]);
    page.over(0);
    assert_eq!(due(&mut page), [(2, Span::millis(20))]);
    page.over(2);
    page.over(3);
    assert!(page.is_over() && page.next_due().is_none());
}

#[test]
fn an_object_that_was_asked_for_before_its_initiator_came_goes_by_the_order_of_arrivals() {
    let mut early = request(20, 10, "a", 10);
    early.initiator = Some(0);
    let document =
        PageRequest { first_byte: Some(Span::millis(50)), ..request(0, 100, "a", 1_000) };
    let unknown = request(0, 100, "a", 1_000);
    for document in [document, unknown] {
        let plan = recorded(vec![document, early.clone()]);
        assert_eq!(plan.objects[1].after, After::Arrivals(0));
        assert_eq!(plan.objects[1].gap, Span::millis(20));
    }
}

#[test]
fn hosts_keep_their_numbers_and_shared_connections_have_one() {
    let two = |host: &str, connection: &str| PageRequest {
        version: HttpVersion::Two,
        connection: Some(connection.into()),
        ..request(0, 1, host, 1)
    };
    let mut sites = Sites::default();
    let mut numbers = |requests: Vec<PageRequest>| -> Vec<u32> {
        let page = PageLoad { name: "p".into(), requests, ..PageLoad::default() };
        let plan = Plan::of_recording(&page, &mut sites).expect("it has objects");
        plan.objects.iter().map(|object| object.shared).collect()
    };
    // Two hosts on one connection, and the first on another one too.
    let first = numbers(vec![two("a", "1"), two("b", "1"), two("a", "2"), two("c", "3")]);
    assert_eq!((first[0], first[1]), (first[0], first[0]));
    assert!(first[2] != first[0] && first[3] != first[0] && first[3] != first[2]);
    // Another page of the same hosts, whose connections have other names.
    assert_eq!(numbers(vec![two("a", "8"), two("b", "8"), two("a", "9")]), first[..3]);
    // HTTP/1.1 says nothing of what may be shared.
    let one = PageRequest { version: HttpVersion::One, ..two("b", "1") };
    let [b] = numbers(vec![one])[..] else { panic!("one object") };
    assert_ne!(b, first[0]);
}

#[test]
fn a_host_gives_six_objects_at_once_and_the_others_in_order() {
    let mut requests: Vec<_> = (0..8).map(|_| request(0, 10, "a", 5)).collect();
    requests.push(request(0, 10, "b", 5));
    let plan = recorded(requests);
    let times = asked(plan, |object| 10 + object as u64);
    assert_eq!(times, [0, 0, 0, 0, 0, 0, 10, 11, 0]);
}

#[test]
fn an_outlined_page_has_its_bytes_and_hosts_and_the_first_object_comes_alone() {
    let page = PageOutline { objects: 50, size: Bytes(1_000_000), hosts: 4 };
    let table = PageTable { pages: vec![page] };
    let mut stream = Stream::new(1, "test");
    let plan = Plan::outlined(&table, &mut stream, |stream| Bytes(1 + stream.bits() % 90_000));
    let sum: u64 = plan.objects.iter().map(|object| object.size.0).sum();
    assert!((999_950..=1_000_050).contains(&sum), "{sum}");
    for host in 0..4 {
        assert!(plan.objects.iter().any(|object| object.host == host));
    }
    let times = asked(plan, |_| 10);
    assert_eq!(times[0], 0);
    assert!(times[1..].iter().all(|at| *at >= 10));
    // No more than four times six at once.
    assert_eq!(times.iter().filter(|at| **at == 10).count(), 24);
}

#[test]
fn objects_that_took_no_time_wait_for_none_but_those_before_them() {
    let plan = recorded(vec![request(0, 0, "a", 1), request(0, 0, "a", 1)]);
    assert_eq!(asked(plan, |_| 5), [0, 5]);
}

#[test]
fn archives_without_an_object_are_no_pages() {
    let page =
        PageLoad { name: "p".into(), requests: vec![request(0, 5, "a", 0)], ..PageLoad::default() };
    let loads = PageLoads { pages: vec![page], unknown_sizes: 0 };
    assert!(RecordedPages::new(&[loads]).is_none());
}
