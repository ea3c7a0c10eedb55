//! `tidegate sizes`: the distribution of transfer sizes in recorded traffic.

use serde::Serialize;
use tidegate_sim::trace::{Direction, Measured, ReadError, measure};

use crate::arguments::{SizesArguments, Way};
use crate::failure::Failure;
use crate::output::{print, print_json};

#[derive(Serialize)]
struct Distribution {
    files: Vec<File>,
    /// Of all sizes.
    mean_bytes: f64,
    /// Of the distribution, which has fewer points than there may be sizes.
    mean_of_points_bytes: f64,
    points: Vec<Point>,
}

#[derive(Serialize)]
struct File {
    file: String,
    format: String,
    sizes: u64,
    left_out: u64,
}

#[derive(Serialize)]
struct Point {
    size_bytes: u64,
    cumulative_probability: f64,
}

pub(crate) fn run(arguments: &SizesArguments) -> Result<(), Failure> {
    let points = usize::try_from(arguments.points).expect("the range is checked by clap");
    let direction = match arguments.direction {
        Way::Down => Some(Direction::Down),
        Way::Up => Some(Direction::Up),
        Way::Both => None,
    };
    let measured = measure(&arguments.files, direction, points)
        .map_err(|error: ReadError| Failure::input(error))?;
    if arguments.json {
        return print_json(&json(&measured));
    }
    let mean = format!("mean {:.0} bytes", measured.mean);
    let comments: Vec<_> = measured
        .files
        .iter()
        .map(|file| {
            let name = file.path.file_name().unwrap_or(file.path.as_os_str()).to_string_lossy();
            let (sizes, left_out) = (file.sizes, file.left_out);
            format!("{name}: {}, {sizes} sizes, {left_out} records without one", file.format)
        })
        .collect();
    let comments: Vec<_> = comments.iter().chain([&mean]).map(String::as_str).collect();
    let mut csv = Vec::new();
    measured.distribution.write(&mut csv, &comments).expect("memory takes everything");
    print(&String::from_utf8_lossy(&csv))
}

fn json(measured: &Measured) -> Distribution {
    let files = measured.files.iter().map(|file| File {
        file: file.path.display().to_string(),
        format: file.format.to_string(),
        sizes: file.sizes,
        left_out: file.left_out,
    });
    let points = measured
        .distribution
        .points()
        .iter()
        .map(|point| Point { size_bytes: point.size.0, cumulative_probability: point.probability });
    Distribution {
        files: files.collect(),
        mean_bytes: measured.mean,
        mean_of_points_bytes: measured.distribution.mean(),
        points: points.collect(),
    }
}
