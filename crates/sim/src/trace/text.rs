//! What the text formats share: lines with their numbers, times and dates.

use tidegate_core::units::NANOS_PER_SECOND;
use tidegate_core::{Span, Time};

/// The lines of a text, counted from 1, without their ends (`\n` or `\r\n`)
/// and without the byte-order mark that some editors put in front.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let text = without_mark(text);
    // What follows the end of the last line is not a line.
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let pieces = text.split(|byte| *byte == b'\n');
    let lines = pieces.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    (1..).zip(lines).filter(move |_| !text.is_empty())
}

/// The text without a byte-order mark.
pub(super) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// A line's fields as text, trimmed; `None` if it is not UTF-8.
pub(super) fn trimmed(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().map(str::trim)
}

/// Reads seconds exactly: a Unix time with nanoseconds does not fit into a
/// floating-point number. Only the scientific form (`1e-05`) goes through one.
pub(super) fn seconds(text: &str) -> Option<Time> {
    if let Ok(Span(nanos)) = format!("{text} s").parse() {
        return Some(Time(nanos));
    }
    let seconds: f64 = text.parse().ok()?;
    let fits = 0.0..(u64::MAX / NANOS_PER_SECOND) as f64;
    fits.contains(&seconds).then(|| Time(Span::from_seconds(seconds).0))
}

/// Reads a text from its start.
pub(super) struct Scan<'a>(pub(super) &'a str);

impl Scan<'_> {
    /// A number of exactly `digits` digits, at most 9.
    fn number(&mut self, digits: usize) -> Option<i64> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        let all_digits = number.bytes().all(|byte| byte.is_ascii_digit());
        self.0 = rest;
        all_digits.then(|| number.parse().ok())?
    }

    fn literal(&mut self, literal: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(literal)?;
        Some(())
    }

    /// `17/May/2015:10:05:03 +0000`, in seconds of Unix time.
    pub(super) fn log_date(&mut self) -> Option<i64> {
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let day = self.number(2)?;
        self.literal("/")?;
        let (name, rest) = self.0.split_at_checked(3)?;
        let month = (1..).zip(MONTHS).find(|(_, month)| *month == name)?.0;
        self.0 = rest;
        self.literal("/")?;
        let year = self.number(4)?;
        self.literal(":")?;
        let clock = self.clock()?;
        self.literal(" ")?;
        Some(days(year, month, day)? * 86_400 + clock - self.zone()?)
    }

    /// `2016-01-24T14:41:45.818Z` or with `+01:00`, in nanoseconds of Unix time.
    pub(super) fn iso_date(&mut self) -> Option<i128> {
        let year = self.number(4)?;
        self.literal("-")?;
        let month = self.number(2)?;
        self.literal("-")?;
        let day = self.number(2)?;
        self.literal("T")?;
        let clock = self.clock()?;
        let mut nanos = 0;
        if self.literal(".").is_some() {
            let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
            let (fraction, rest) = self.0.split_at(end);
            self.0 = rest;
            let nine_digits = format!("{fraction:0<9}");
            nanos = nine_digits[..9].parse().ok()?;
        }
        let zone = if self.literal("Z").is_some() { 0 } else { self.zone()? };
        let seconds = days(year, month, day)? * 86_400 + clock - zone;
        Some(i128::from(seconds) * i128::from(NANOS_PER_SECOND) + nanos)
    }

    /// `14:41:45`, in seconds. A minute may have 61 of them.
    fn clock(&mut self) -> Option<i64> {
        let hour = self.number(2)?;
        self.literal(":")?;
        let minute = self.number(2)?;
        self.literal(":")?;
        let second = self.number(2)?;
        (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3_600 + minute * 60 + second)
    }

    /// `+0100` or `-04:00`, in seconds east of Greenwich.
    fn zone(&mut self) -> Option<i64> {
        let sign = match (self.literal("+"), self.literal("-")) {
            (Some(()), _) => 1,
            (_, Some(())) => -1,
            _ => return None,
        };
        let hours = self.number(2)?;
        // The colon is optional.
        let _ = self.literal(":");
        let minutes = self.number(2)?;
        Some(sign * (hours * 3_600 + minutes * 60))
    }
}

/// Days from 1970-01-01 to a day of the Gregorian calendar. Years are counted from
/// March, so that the leap day is a year's last.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days_before_month = (153 * month + 2) / 5;
    /// Days from the March before year 0 to 1970-01-01.
    const EPOCH: i64 = 719_468;
    Some(365 * year + leap_days + days_before_month + day - 1 - EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_unix_times() {
        assert_eq!(Scan("01/Jan/1970:00:00:00 +0000").log_date(), Some(0));
        assert_eq!(Scan("01/Jul/1995:00:00:01 -0400").log_date(), Some(804_571_201));
        assert_eq!(Scan("29/Feb/2000:12:00:00 +0000").log_date(), Some(951_825_600));
        assert_eq!(Scan("2000-03-01T00:00:00Z").iso_date(), Some(951_868_800_000_000_000));
        let expected = Some(1_453_646_505_818_000_000);
        assert_eq!(Scan("2016-01-24T14:41:45.818Z").iso_date(), expected);
        assert_eq!(Scan("2016-01-24T15:41:45.8180000001+01:00").iso_date(), expected);
        assert_eq!(Scan("2016-13-24T14:41:45Z").iso_date(), None);
        assert_eq!(Scan("2016-01-24").iso_date(), None);
    }

    #[test]
    fn seconds_are_exact() {
        assert_eq!(seconds("1438387200.123456789"), Some(Time(1_438_387_200_123_456_789)));
        assert_eq!(seconds("1e-05"), Some(Time(10_000)));
        for text in ["-1", "nan", "inf", "1e300", "", "1 s"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn lines_are_counted_as_editors_do() {
        let numbered = |text: &'static [u8]| lines(text).collect::<Vec<_>>();
        assert_eq!(numbered(b""), []);
        assert_eq!(numbered(b"a\r\n\nb"), [(1, &b"a"[..]), (2, b""), (3, b"b")]);
        assert_eq!(numbered(b"\xef\xbb\xbfa\n"), [(1, &b"a"[..])]);
    }
}
