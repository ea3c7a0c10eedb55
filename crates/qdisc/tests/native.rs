//! What the programs take for a packet on this machine's kernel, by its own stop watch
//! (`BPF_PROG_TEST_RUN`), but for what only a qdisc may do (bpf/cost/cost.h).
#![cfg(target_os = "linux")]

use std::path::Path;

use libbpf_rs::{MapCore as _, MapFlags, ObjectBuilder, ProgramInput};
use tidegate_core::framing::Framing;
use tidegate_core::{Buffer, Rate, registry};
use tidegate_link::Queue;
use tidegate_qdisc::layout::{Statistics, contracts, parameters};
use tidegate_qdisc::programs::PROGRAMS;

/// The programs of bpf/cost/programs.h, each with what it does more than the first.
const PARTS: [&str; 5] = ["cost_nothing", "cost_parse", "cost_table", "cost_memory", "cost_all"];
const FLOWS: [u64; 3] = [1, 16, 256];
const BACKLOG: u64 = 300;
const REPEAT: u32 = 100_000;
const ROUNDS: usize = 5;

/// A frame of 64 bytes with a datagram; programs write the sender's port into it.
fn frame() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
    frame.extend([16, 0, 15, 160, 0, 30, 0, 0]);
    frame.resize(64, 0);
    frame
}

#[test]
#[ignore = "tools/bpf-cost.sh"]
fn nanoseconds_of_a_packet() {
    let folder = std::env::var("TIDEGATE_COST_OBJECTS").expect("tools/bpf-cost.sh sets it");
    println!("| program | flows | {} |", PARTS.join(" | "));
    println!("| --- | ---: {}|", "| ---: ".repeat(PARTS.len()));
    for program in PROGRAMS {
        let entry = registry::find(program.discipline).unwrap();
        let queue = Queue {
            entry,
            settings: entry.settings(&[]).unwrap(),
            limit: Buffer::packets(1_000).into(),
            rate: Rate(100_000_000_000),
            framing: Framing::RAW,
        };
        for flows in FLOWS {
            let path = Path::new(&folder).join(program.discipline).with_extension("o");
            let mut open = ObjectBuilder::default().open_file(path).unwrap();
            let words = |words: &[u64]| -> Vec<u8> {
                words.iter().flat_map(|word| word.to_ne_bytes()).collect()
            };
            for mut map in open.maps_mut() {
                if map.name() == ".data.parameters" {
                    map.set_initial_value(&words(&parameters(&queue, true))).unwrap();
                } else if map.name() == ".data.contracts" {
                    map.set_initial_value(&words(&contracts(&queue))).unwrap();
                } else if map.name() == ".data.cost" {
                    map.set_initial_value(&words(&[flows, BACKLOG])).unwrap();
                } else if map.name() == "qdisc" {
                    map.set_autocreate(false).unwrap();
                }
            }
            for mut part in open.progs_mut() {
                let is_ours = part.name().to_string_lossy().starts_with("cost_");
                part.set_autoload(is_ours);
            }
            let object = open.load().unwrap();
            let frame = frame();
            let costs = PARTS.map(|name| {
                let part = object.progs_mut().find(|part| part.name() == name).unwrap();
                let mut costs: Vec<_> = (0..ROUNDS)
                    .map(|_| {
                        let input = ProgramInput {
                            data_in: Some(&frame),
                            repeat: REPEAT,
                            ..ProgramInput::default()
                        };
                        let output = part.test_run(input).unwrap();
                        assert_eq!(output.return_value, 1, "{name}");
                        output.duration.as_nanos()
                    })
                    .collect();
                costs.sort_unstable();
                format!("{} ({} to {})", costs[ROUNDS / 2], costs[0], costs[ROUNDS - 1])
            });
            let statistics = object.maps().find(|map| map.name() == ".data.statistics").unwrap();
            let counted = statistics.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
            let counted = counted.as_chunks::<8>().0.iter().copied().map(u64::from_ne_bytes);
            let counted = Statistics::new(counted.collect()).unwrap();
            // Every packet came in, and all but the backlog have left.
            let runs = u64::from(REPEAT) * ROUNDS as u64;
            assert_eq!(counted.word("arrived_packets"), runs);
            assert_eq!(counted.word("sent_packets"), runs - BACKLOG);
            assert_eq!([counted.word("malformed_frames"), counted.word("other_frames")], [0, 0]);
            println!("| {} | {flows} | {} |", program.discipline, costs.join(" | "));
        }
    }
}
