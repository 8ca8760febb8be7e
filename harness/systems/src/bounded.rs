//! Files that come from outside, read within bounds.
//!
//! What is named on the command line, or lies in a folder that may be somebody else's, may be of any length,
//! or no file at all: a device that never ends, a pipe to which nobody writes. So only a regular file is
//! read, and no more of it than the kind of file can honestly hold.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// What people write: a night's file, a system's, a script, a document.
pub const WRITTEN: u64 = 2 << 20;
/// What is said of a run before it begins: `run.json`, `schedule.json`, and small files beside them.
pub const PLANNED: u64 = 16 << 20;
/// What is collected while a run goes on or over nights: `results.json`, `observed.json`, `faults.jsonl`,
/// `nights.jsonl`.
pub const COLLECTED: u64 = 256 << 20;
/// The end of a log, for a message.
pub const LAST_WORDS: u64 = 64 << 10;

/// Opens a regular file, of whatever length.
///
/// # Errors
/// It can't be opened, or is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    // Whoever opens a pipe waits for its writer, but not so.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "a folder" } else { "a pipe or a device" };
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("it is {what}, and no regular file"),
        ));
    }
    Ok(file)
}

/// The bytes of a regular file.
///
/// # Errors
/// As [`open`], and where it is longer than `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    let too_long = || {
        let (has, mebibytes) = (length >> 20, most >> 20);
        io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has {has} MiB, and at most {mebibytes} MiB of such a file are read"),
        )
    };
    if length > most {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most { Err(too_long()) } else { Ok(bytes) }
}

/// The end of a log, of which at most so many bytes are read; nothing where it can't be read. What is no
/// UTF-8 is replaced.
#[must_use]
pub fn tail(path: &Path, most: u64) -> String {
    let read = || {
        let mut file = open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
        let mut end = Vec::new();
        file.take(most).read_to_end(&mut end)?;
        io::Result::Ok(end)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

/// The text of a regular file.
///
/// # Errors
/// As [`read`], and where it is no UTF-8.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is no text in UTF-8");
    String::from_utf8(read(path, most)?).map_err(no_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read_and_no_more_of_them_than_is_allowed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "12345678").expect("written");
        assert_eq!(read(&file, 8).expect("read"), b"12345678");
        assert_eq!(read(&file, 7).expect_err("too long").kind(), io::ErrorKind::FileTooLarge);
        let sparse = folder.path().join("sparse");
        std::fs::File::create(&sparse).and_then(|file| file.set_len(3 << 30)).expect("made");
        let why = read(&sparse, WRITTEN).expect_err("too long").to_string();
        assert!(why.contains("3072 MiB, and at most 2 MiB"), "{why}");
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .expect("a pipe");
        for (path, what) in [
            (pipe.as_path(), "a pipe or a device"),
            (Path::new("/dev/zero"), "a pipe or a device"),
            (folder.path(), "a folder"),
        ] {
            let why = read(path, 8).expect_err("no file").to_string();
            assert!(why.contains(what), "{}: {why}", path.display());
        }
        assert_eq!((tail(&file, 3), tail(&file, 80)), ("678".to_owned(), "12345678".to_owned()));
        assert_eq!(tail(Path::new("/dev/zero"), 3), "");
        std::fs::write(&file, b"\xff").expect("written");
        assert!(text(&file, 8).expect_err("no text").to_string().contains("UTF-8"));
    }
}
