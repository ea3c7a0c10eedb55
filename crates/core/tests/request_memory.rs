//! The memory that waiting requests cost, which the limits are meant to bound.

use std::num::NonZeroU32;

use tidegate_core::request::{ClassId, Request, Scheduler, UserId, catalogue};
use tidegate_core::{Rate, Time};

const WAITING: u64 = 100_000;

/// Bytes that a scheduler holds for each of so many requests of so many users.
fn bytes_per_request(users: u64) -> f64 {
    let msf = catalogue::find("msf").expect("it is in the catalogue");
    let weights = [NonZeroU32::MIN; 3];
    let given = [("waiting_per_user", "1000000")];
    let mut kept: Option<Scheduler> = None;
    let allocated = allocation_counter::measure(|| {
        let mut scheduler = msf.build(&given, Rate(1_000_000), &weights, 1).expect("within range");
        for handle in 0..WAITING {
            let user = UserId(handle % users);
            let class = ClassId((user.0 % 3) as u32);
            scheduler.arrive(Request { handle, class, user }).expect("so many may wait");
        }
        kept = Some(scheduler);
    });
    assert_eq!(kept.map(|scheduler| scheduler.waiting()), Some(WAITING as usize));
    allocated.bytes_current as f64 / WAITING as f64
}

#[test]
fn a_waiting_request_takes_as_much_as_its_documentation_says() {
    let few_users = bytes_per_request(10);
    let as_many_users = bytes_per_request(WAITING);
    println!("{few_users} bytes, {as_many_users} with a user of its own");
    assert!(few_users <= 80.0, "{few_users} bytes");
    assert!(as_many_users <= 285.0, "{as_many_users} bytes with a user of its own");
}

#[test]
fn a_refused_request_takes_nothing() {
    let msf = catalogue::find("msf").expect("it is in the catalogue");
    let given = [("waiting", "1"), ("window", "fixed")];
    let mut scheduler =
        msf.build(&given, Rate(1_000_000), &[NonZeroU32::MIN], 1).expect("within range");
    let request = |handle| Request { handle, class: ClassId(0), user: UserId(handle) };
    scheduler.arrive(request(0)).expect("it may wait");
    let allocated = allocation_counter::measure(|| {
        for handle in 1..1_000 {
            assert!(scheduler.arrive(request(handle)).is_err());
        }
    });
    assert_eq!(allocated.count_total, 0);
    assert!(scheduler.next(Time::ZERO).is_some());
}
