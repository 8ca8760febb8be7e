//! A stand-in for a member, for tests: connections and datagrams on request, one line each.
//!
//! | line | does | answers |
//! |---|---|---|
//! | `listen ADDRESS` | accepts connections and sends back what comes | `listening` |
//! | `dial ADDRESS MILLISECONDS` | connects | `connected`, `timeout`, `refused`, or another error |
//! | `say MILLISECONDS` | sends a byte, waits for it to come back | `echo`, `silence`, `broken` |
//! | `now` | | its wall clock, in milliseconds since 1970 |
//! | `throw ADDRESS COUNT SIZE` | sends datagrams | `thrown` |

use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn main() -> io::Result<()> {
    let mut connection = None;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let said = obey(&words, &mut connection).unwrap_or_else(|error| format!("error {error}"));
        println!("{said}");
    }
    Ok(())
}

fn obey(words: &[&str], connection: &mut Option<TcpStream>) -> io::Result<String> {
    let wrong = |_| io::Error::from(ErrorKind::InvalidInput);
    let address =
        |text: &str| text.parse::<SocketAddr>().map_err(|_| io::Error::from(ErrorKind::InvalidInput));
    let said = match *words {
        ["listen", at] => {
            let listener = TcpListener::bind(address(at)?)?;
            thread::spawn(move || {
                listener.incoming().flatten().for_each(|stream| drop(thread::spawn(|| echo(stream))))
            });
            "listening"
        }
        ["dial", to, patience] => {
            let patience = Duration::from_millis(patience.parse().map_err(wrong)?);
            match TcpStream::connect_timeout(&address(to)?, patience) {
                Ok(stream) => {
                    *connection = Some(stream);
                    "connected"
                }
                Err(error) if error.kind() == ErrorKind::TimedOut => "timeout",
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => "refused",
                Err(error) => return Err(error),
            }
        }
        ["say", patience] => {
            let patience = Duration::from_millis(patience.parse().map_err(wrong)?);
            let stream = connection.as_mut().ok_or(ErrorKind::NotConnected)?;
            stream.set_read_timeout(Some(patience))?;
            let answered = stream.write_all(b"x").and_then(|()| stream.read(&mut [0]));
            match answered {
                Ok(1) => "echo",
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    "silence"
                }
                Ok(_) | Err(_) => "broken",
            }
        }
        ["now"] => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
            return Ok(now.as_millis().to_string());
        }
        ["throw", to, count, size] => {
            let to = address(to)?;
            let any = if to.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
            let socket = UdpSocket::bind(any)?;
            let bytes = vec![0; size.parse().map_err(wrong)?];
            for _ in 0..count.parse::<u32>().map_err(wrong)? {
                socket.send_to(&bytes, to)?;
            }
            "thrown"
        }
        _ => "what?",
    };
    Ok(said.to_owned())
}

fn echo(mut stream: TcpStream) {
    let mut byte = [0];
    while matches!(stream.read(&mut byte), Ok(1)) {
        if stream.write_all(&byte).is_err() {
            return;
        }
    }
}
