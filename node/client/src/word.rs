//! The four-letter words: one question in plain text, one answer, end of connection.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, ToSocketAddrs};

/// An answer longer than this is cut off with an error.
const MAX_ANSWER: u64 = 4 << 20;

/// Asks a server for one word (`ruok`, `srvr`, `mntr`, ...) and gives its answer.
///
/// There is no deadline in here: put `tokio::time::timeout` around it.
///
/// # Errors
/// When the socket fails, or the answer is no text or too long.
pub async fn four_letter_word(addr: impl ToSocketAddrs, word: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(addr).await?;
    stream.write_all(word.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER + 1).read_to_end(&mut answer).await?;
    if u64::try_from(answer.len()).is_ok_and(|length| length > MAX_ANSWER) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "answer is too long"));
    }
    String::from_utf8(answer).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
