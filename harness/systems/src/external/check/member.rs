//! A member as a client meets it in the conversation: a port that counts the requests for a change, and
//! breaks the first one off.
//!
//! A request is known by its value, which stands in it in decimal, in base64 or in four bytes. What goes
//! before it (a handshake, a login, a read) somebody must answer. Where a real member stands behind the port,
//! it does, and is cut off at once when the value comes: it never sees that request. Otherwise the port has
//! words that it says first, or none.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use workloads::Op;
use workloads::op::Body;

use super::{Conduct, VALUE};

/// What stands behind the ports.
#[derive(Clone, Debug)]
pub enum Behind {
    /// Nobody. These bytes are said first.
    Words(Vec<u8>),
    /// A member that runs.
    Member(SocketAddr),
}

impl Behind {
    /// Whether it can be seen what a client makes of this operation when it is broken off. A member that runs
    /// answers whatever has no value by which its request is known.
    pub(super) fn can_try(&self, op: &Op) -> bool {
        match self {
            Self::Words(_) => true,
            Self::Member(_) => op.is_change() && !matches!(op.body, Body::Acquire | Body::Watch { .. }),
        }
    }
}

/// What a member heard of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    /// How often it came. A value that stands in one request twice is one request.
    pub(super) requests: usize,
    /// It came in a transaction that was begun, in words, and not yet committed.
    pub(super) is_begun_only: bool,
}

/// Values that come within this time over one connection are of one request: whoever tries again has waited.
const ONE_REQUEST: Duration = Duration::from_millis(50);

/// A member of the conversation.
pub(super) struct Member {
    pub(super) address: SocketAddr,
    heard: Arc<Mutex<Heard>>,
    /// What accepts; none where nobody listens.
    task: Option<JoinHandle<()>>,
    /// A port that is bound and not listened on, so that nobody else takes it.
    _held: Option<TcpSocket>,
}

impl Member {
    pub(super) async fn open(conduct: Conduct, behind: &Behind) -> std::io::Result<Self> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let heard = Arc::new(Mutex::new(Heard::default()));
        if conduct == Conduct::Refuses {
            let socket = TcpSocket::new_v4()?;
            socket.bind(any)?;
            return Ok(Self { address: socket.local_addr()?, heard, task: None, _held: Some(socket) });
        }
        let listener = TcpListener::bind(any).await?;
        let address = listener.local_addr()?;
        let (seen, behind) = (Arc::clone(&heard), behind.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(hear(stream, conduct, behind.clone(), Arc::clone(&seen)));
            }
        });
        Ok(Self { address, heard, task: Some(task), _held: None })
    }

    pub(super) fn heard(&self) -> Heard {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Counts the requests in what a client sends, by their value.
struct Counting {
    /// The value in every form in which it is known.
    forms: Vec<Vec<u8>>,
    /// All that was said.
    said: Vec<u8>,
    /// How often the value stands in it.
    counted: usize,
    /// When it came last, and between which bytes.
    last: Option<(Instant, Range<usize>)>,
}

impl Counting {
    fn new() -> Self {
        let mut forms = vec![VALUE.to_string().into_bytes(), STANDARD.encode(VALUE.to_string()).into_bytes()];
        if let Ok(value) = i32::try_from(VALUE) {
            forms.extend([value.to_be_bytes().to_vec(), value.to_le_bytes().to_vec()]);
        }
        Self { forms, said: Vec::new(), counted: 0, last: None }
    }

    /// Takes note of the last `length` bytes of what was said.
    fn note(&mut self, length: usize, told: &mut Heard) {
        let said = &self.said;
        let times: usize = self
            .forms
            .iter()
            .map(|form| said.windows(form.len()).filter(|part| *part == form.as_slice()).count())
            .sum();
        if times > self.counted {
            let new = said.len() - length..said.len();
            let of_the_last = self.last.as_ref().is_some_and(|(at, bytes)| {
                at.elapsed() < ONE_REQUEST && said[bytes.clone()] != said[new.clone()]
            });
            told.requests += if of_the_last { 0 } else { requests(&said[new.clone()], times - self.counted) };
            self.last = Some((Instant::now(), new));
        }
        told.is_begun_only = is_begun_only(said);
        self.counted = times;
    }
}

/// Reads what a client sends until the conversation is broken off, or for ever.
async fn hear(mut stream: TcpStream, conduct: Conduct, behind: Behind, heard: Arc<Mutex<Heard>>) {
    let (greeting, mut member) = match behind {
        Behind::Words(greeting) => (greeting, None),
        Behind::Member(address) => match TcpStream::connect(address).await {
            Ok(member) => (Vec::new(), Some(member)),
            Err(_) => return,
        },
    };
    for passes_on in [Some(&stream), member.as_ref()].into_iter().flatten() {
        let _ = passes_on.set_nodelay(true);
    }
    // Somebody answers, so there are hands to shake first.
    let has_words = member.is_some() || !greeting.is_empty();
    if stream.write_all(&greeting).await.is_err() {
        return;
    }
    let mut counting = Counting::new();
    let mut answer = vec![0; 1 << 16];
    loop {
        tokio::select! {
            read = stream.read_buf(&mut counting.said) => {
                let Ok(length @ 1..) = read else { return };
                counting.note(length, &mut heard.lock().unwrap_or_else(PoisonError::into_inner));
                if counting.counted > 0 {
                    // It never sees the request, and what it says is heard no more.
                    member = None;
                }
                if conduct == Conduct::Resets && (!has_words || counting.counted > 0) {
                    let _ = stream.set_zero_linger();
                    return;
                }
                if let Some(member) = &mut member {
                    let from = counting.said.len() - length;
                    if member.write_all(&counting.said[from..]).await.is_err() {
                        return;
                    }
                }
            }
            read = answered(&mut member, &mut answer) => {
                let Ok(length @ 1..) = read else { return };
                if stream.write_all(&answer[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// What the member says; for ever nothing where there is none.
async fn answered(member: &mut Option<TcpStream>, answer: &mut [u8]) -> std::io::Result<usize> {
    match member {
        Some(member) => member.read(answer).await,
        None => std::future::pending().await,
    }
}

/// How many requests these bytes are, in which the value stands so often: as many, where they are the same
/// bytes again and again.
fn requests(said: &[u8], times: usize) -> usize {
    if times < 2 || !said.len().is_multiple_of(times) {
        return 1;
    }
    let (first, _) = said.split_at(said.len() / times);
    let again = said.chunks(first.len().max(1)).all(|part| part == first);
    if again { times } else { 1 }
}

/// Whether a transaction was begun in what was said, and not asked to be committed: as databases of SQL have
/// it.
fn is_begun_only(said: &[u8]) -> bool {
    let said = String::from_utf8_lossy(said).to_ascii_uppercase();
    ["BEGIN", "START TRANSACTION"].iter().any(|word| said.contains(word)) && !said.contains("COMMIT")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    #[test]
    fn requests_are_known_by_their_value_and_transactions_by_their_words() {
        assert!(is_begun_only(b"start transaction; insert into t values (1)"));
        assert!(!is_begun_only(b"begin; insert into t values (1); commit"));
        assert!(!is_begun_only(b"insert into t values (1)"));
        assert_eq!(requests(b"write 7\nwrite 7\n", 2), 2);
        assert_eq!(requests(b"insert 7 or update 7", 2), 1);
        assert_eq!(requests(b"write 7\n", 1), 1);
        let mut counting = Counting::new();
        let mut heard = Heard::default();
        counting.said.extend(b"\x00\x01");
        counting.said.extend(VALUE.to_be_bytes());
        counting.note(10, &mut heard);
        assert_eq!(heard.requests, 1, "eight bytes have the four in them");
    }

    async fn until_heard(member: &Member, requests: usize) {
        let deadline = Instant::now() + PATIENCE;
        while member.heard().requests < requests && Instant::now() < deadline {
            tokio::task::yield_now().await;
        }
        assert_eq!(member.heard().requests, requests);
    }

    #[tokio::test]
    async fn a_value_that_stands_in_a_request_twice_is_one_request_and_a_request_again_is_not() {
        let member = Member::open(Conduct::IsSilent, &Behind::Words(Vec::new())).await.expect("a port");
        let said = format!("insert values ({VALUE}) on conflict update set v = {VALUE}");
        for requests in 1..=2 {
            let mut client = TcpStream::connect(member.address).await.expect("connected");
            client.write_all(said.as_bytes()).await.expect("sent");
            until_heard(&member, requests).await;
        }
    }

    #[tokio::test]
    async fn a_real_member_shakes_hands_and_never_sees_the_request() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let behind = Behind::Member(listener.local_addr().expect("an address"));
        let member = Member::open(Conduct::Resets, &behind).await.expect("a port");
        let mut client = TcpStream::connect(member.address).await.expect("connected");
        let (mut real, _) = listener.accept().await.expect("it is asked");
        let mut four = [0; 4];
        real.write_all(b"INFO").await.expect("said first");
        client.read_exact(&mut four).await.expect("passed on");
        client.write_all(b"AUTH").await.expect("sent");
        real.read_exact(&mut four).await.expect("passed on");
        assert_eq!(&four, b"AUTH");
        client.write_all(format!("SET {VALUE}").as_bytes()).await.expect("sent");
        until_heard(&member, 1).await;
        assert!(client.read(&mut four).await.is_err(), "the connection is reset");
        assert_eq!(real.read(&mut four).await.expect("it ends"), 0, "the request never came");
    }
}
