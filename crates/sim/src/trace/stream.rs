//! The bytes of a recording, wherever they come from: a file, a pipe or standard
//! input, compressed or not.
//!
//! The first bytes tell whether gzip (RFC 1952) or zstd (RFC 8878) compressed what
//! follows; the name does not. Both may hold several members or frames, as `cat` and
//! parallel compressors make them.
//!
//! Nobody knows how much comes out of a pipe, a device or a compressed file before it
//! has come out. So everything is bounded: [`MOST_TEXT`] for what is held in memory as
//! a whole, [`MOST_STREAM`] for what is read record by record. A file that ends in the
//! middle of its compressed data gives what was there (of zstd, all but the last window)
//! and then [`UnexpectedEof`](ErrorKind::UnexpectedEof), which a reader of captures takes
//! for the end.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::ReadError;

/// The most bytes of a file that is held in memory as a whole: 1 GiB.
pub const MOST_TEXT: u64 = 1 << 30;
/// The most bytes of a file that is read record by record: 64 GiB. A second of
/// processor time unpacks about one of them.
pub const MOST_STREAM: u64 = 1 << 36;

/// The name of standard input on a command line.
pub const STANDARD_INPUT: &str = "-";

/// Opens the recording at `path`, or standard input if that is `-`, and unpacks it.
///
/// # Errors
/// When it cannot be opened, or its first bytes cannot be read.
pub fn open(path: &Path) -> Result<Box<dyn Read>, ReadError> {
    let opened = if path.as_os_str() == STANDARD_INPUT {
        plain(io::stdin())
    } else {
        File::open(path).and_then(plain)
    };
    opened.map_err(|reason| ReadError::Unreadable { file: name(path), reason })
}

/// What messages call the recording at `path`.
#[must_use]
pub fn name(path: &Path) -> String {
    if path.as_os_str() == STANDARD_INPUT {
        "standard input".into()
    } else {
        path.display().to_string()
    }
}

/// The bytes of `reader`, unpacked if they are compressed; at most [`MOST_STREAM`].
///
/// ```
/// use std::io::Read;
/// use tidegate_sim::trace::stream;
///
/// let mut text = String::new();
/// stream::plain(&b"start_s,size_bytes\n"[..])?.read_to_string(&mut text)?;
/// assert_eq!(text, "start_s,size_bytes\n");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// When the first bytes cannot be read.
pub fn plain<'a>(mut reader: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut start = Vec::new();
    (&mut reader).take(4).read_to_end(&mut start)?;
    let kind = Packing::of(&start);
    let whole = BufReader::new(Cursor::new(start).chain(reader));
    Ok(match kind {
        Packing::None => Box::new(Bounded::new(whole, MOST_STREAM)),
        Packing::Gzip => Box::new(Bounded::new(MultiGzDecoder::new(whole), MOST_STREAM)),
        Packing::Zstd => Box::new(Bounded::new(Frames::new(whole), MOST_STREAM)),
    })
}

/// All bytes of `reader`; `file` is for the message if they are too many.
///
/// # Errors
/// When they cannot be read, or are more than [`MOST_TEXT`].
pub fn text(file: &str, reader: impl Read) -> Result<Vec<u8>, ReadError> {
    let mut contents = Vec::new();
    match Bounded::new(reader, MOST_TEXT).read_to_end(&mut contents) {
        Ok(_) => Ok(contents),
        Err(reason) => Err(ReadError::Unreadable { file: file.into(), reason }),
    }
}

/// How a file is compressed.
#[derive(Clone, Copy)]
enum Packing {
    None,
    Gzip,
    Zstd,
}

impl Packing {
    fn of(start: &[u8]) -> Packing {
        match start {
            [0x1f, 0x8b, 8, ..] => Packing::Gzip,
            // A frame, or one to be skipped, with which parallel compressors begin.
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Packing::Zstd,
            _ => Packing::None,
        }
    }
}

/// A reader that fails when there is more than it may give.
struct Bounded<R> {
    inner: R,
    most: u64,
    left: u64,
}

impl<R> Bounded<R> {
    fn new(inner: R, most: u64) -> Bounded<R> {
        Bounded { inner, most, left: most }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            return match self.inner.read(&mut [0])? {
                0 => Ok(0),
                _ => {
                    let most = self.most >> 30;
                    let message = format!("found more than {most} GiB, expected at most that");
                    Err(io::Error::new(ErrorKind::FileTooLarge, message))
                }
            };
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.inner.read(&mut buffer[..room])?;
        self.left -= count as u64;
        Ok(count)
    }
}

/// The frames of a zstd file, one after another.
///
/// The decoder keeps a window of up to 128 MiB and refuses frames that ask for more. Of a
/// frame that breaks off it does not give away the last window.
struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
}

impl<R: BufRead> Frames<R> {
    fn new(source: R) -> Frames<R> {
        Frames { source, decoder: FrameDecoder::new() }
    }

    /// Begins the next frame; false if there is none.
    fn next(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = (&mut self.source).take(length.into());
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(error) => return Err(self.broken(&error)),
            }
        }
        Ok(false)
    }

    /// A file that ends too early is told apart from one that is corrupt.
    fn broken(&mut self, error: &FrameDecoderError) -> io::Error {
        match self.source.fill_buf() {
            Ok([]) => io::Error::new(ErrorKind::UnexpectedEof, "the compressed data break off"),
            _ => io::Error::new(ErrorKind::InvalidData, format!("corrupt zstd data: {error}")),
        }
    }

    fn check(&self) -> io::Result<()> {
        let stated = self.decoder.get_checksum_from_data();
        if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
            let message = "corrupt zstd data: the checksum is wrong";
            return Err(io::Error::new(ErrorKind::InvalidData, message));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.decoder.can_collect() > 0 {
                let count = self.decoder.read(buffer)?;
                if self.decoder.is_finished() && self.decoder.can_collect() == 0 {
                    self.check()?;
                }
                return Ok(count);
            }
            if self.decoder.is_finished() && !self.next()? {
                return Ok(0);
            }
            let step = BlockDecodingStrategy::UptoBlocks(1);
            if let Err(error) = self.decoder.decode_blocks(&mut self.source, step) {
                return Err(self.broken(&error));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text).unwrap();
        packed.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        plain(bytes)?.read_to_end(&mut text).map(|_| text)
    }

    #[test]
    fn compressed_files_are_those_that_were_compressed() {
        let text = b"start_s,size_bytes\n0,1\n".repeat(9_000);
        for bytes in [text.clone(), gzip(&text), zstd(&text)] {
            assert_eq!(unpacked(&bytes).unwrap(), text);
        }
        // Two members, two frames, and one to be skipped in front.
        let twice = [&text[..], &text].concat();
        assert_eq!(unpacked(&gzip(&text).repeat(2)).unwrap(), twice);
        let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &zstd(&text)].concat();
        assert_eq!(unpacked(&[skipped, zstd(&text)].concat()).unwrap(), twice);
        assert_eq!(unpacked(b"").unwrap(), b"");
        assert_eq!(unpacked(b"\x1f\x8b").unwrap(), b"\x1f\x8b");
    }

    #[test]
    fn a_compressed_file_that_breaks_off_gives_what_is_there() {
        let text: Vec<u8> =
            (0..1_000_000_u32).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
        for packed in [gzip(&text), zstd(&text)] {
            let mut found = Vec::new();
            let cut = &packed[..packed.len() / 2];
            let error = plain(cut).unwrap().read_to_end(&mut found).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
            assert!(!found.is_empty() && text.starts_with(&found));
        }
    }

    #[test]
    fn corrupt_data_are_no_end() {
        let mut packed = zstd(b"some text that is long enough to be worth a block");
        let last = packed.len() - 1;
        packed[last] ^= 1;
        assert_eq!(unpacked(&packed).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn more_than_the_bound_is_refused_and_as_much_is_not() {
        let read = |most| Bounded::new(&b"12345"[..], most).read_to_end(&mut Vec::new());
        assert_eq!(read(5).unwrap(), 5);
        assert_eq!(read(4).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
}
