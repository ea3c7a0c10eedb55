//! tmp
use std::io;
use tidegate_core::Rate;
use tidegate_judge::workload;
fn main() -> io::Result<()> {
    let a: Vec<f64> = std::env::args().skip(1).map(|x| x.parse().expect("number")).collect();
    let rate = Rate((a[0] * 1e6) as u64);
    workload::write(&workload::transfers(rate, a[1], a[2] as u64), io::stdout())
}
