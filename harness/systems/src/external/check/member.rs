//! A member as a client meets it in the conversation: a port that counts the requests for a change, and
//! breaks the first one off.
//!
//! A request is known by its value, which stands in it in decimal, in base64 or in four bytes. What goes
//! before it (a handshake, a login, a read) somebody must answer. Where a real member stands behind the port,
//! it does, and is cut off at once when the value comes: it never sees that request. Otherwise the port has
//! words that it says first, or none.
//!
//! How long a request is no protocol tells in general: a head comes before its body, a length before its
//! text, and the value may stand anywhere. So a connection is broken off when its client has said something
//! and then nothing more for a moment ([`QUIET`]): then the request has left as a whole, or the client waits
//! for an answer that goes before it.

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

use super::{Conduct, GRACE, PATIENCE, VALUE};

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

/// A client that says nothing for so long has said what it wants to say. Whoever writes a request in pieces
/// writes the next one sooner, also on a machine that is busy.
const QUIET: Duration = Duration::from_millis(150);

/// A client that does not stop talking is broken off so long after it began: before its patience ends.
const NEVER_QUIET: Duration = Duration::from_millis(700);

/// What a client of HTTP waits for before it sends a body, where it says so in the head.
const GO_ON: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

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
    /// Whether a transaction was begun in words, and whether one was asked to be committed.
    begun: bool,
    committed: bool,
}

impl Counting {
    fn new() -> Self {
        let text = VALUE.to_string().into_bytes();
        let mut forms: Vec<Vec<u8>> = (0..3).map(|before| in_base64(&text, before)).collect();
        forms.push(text);
        if let Ok(value) = i32::try_from(VALUE) {
            forms.extend([value.to_be_bytes().to_vec(), value.to_le_bytes().to_vec()]);
        }
        Self { forms, said: Vec::new(), counted: 0, last: None, begun: false, committed: false }
    }

    /// Takes note of the last `length` bytes of what was said.
    fn note(&mut self, length: usize, told: &mut Heard) {
        let said = &self.said;
        let new = said.len() - length..said.len();
        let start = new.start;
        // A form may have begun in what was said before.
        let since = |form: &[u8]| &said[start.saturating_sub(form.len() - 1)..];
        let count = |form: &[u8]| since(form).windows(form.len()).filter(|part| *part == form).count();
        let times: usize = self.forms.iter().map(|form| count(form)).sum();
        if times > 0 {
            let of_the_last = self.last.as_ref().is_some_and(|(at, bytes)| {
                at.elapsed() < ONE_REQUEST && said[bytes.clone()] != said[new.clone()]
            });
            told.requests += if of_the_last { 0 } else { requests(&said[new.clone()], times) };
            self.last = Some((Instant::now(), new));
        }
        let has = |word: &[u8]| since(word).windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
        self.begun |= has(b"BEGIN") || has(b"START TRANSACTION");
        self.committed |= has(b"COMMIT");
        told.is_begun_only = self.begun && !self.committed;
        self.counted += times;
    }

    /// Whether what was said is the head of a request over HTTP whose body waits to be asked for.
    fn waits_to_go_on(&self) -> bool {
        if self.said.len() > LONGEST_HEAD {
            return false;
        }
        let head = self.said.to_ascii_lowercase();
        head.ends_with(b"\r\n\r\n")
            && head.windows(EXPECTS.len()).any(|part| part == EXPECTS)
            && head.windows(5).any(|part| part == b"http/")
    }
}

/// Whoever says more has sent more than a head.
const LONGEST_HEAD: usize = 1 << 14;

/// The header by which a client of HTTP says that it waits.
const EXPECTS: &[u8] = b"expect: 100-continue";

/// The text in base64, as it stands there whatever is around it, behind so many bytes beyond a multiple of
/// three.
fn in_base64(text: &[u8], before: usize) -> Vec<u8> {
    let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(text.iter().copied()).collect();
    // A letter has six bits; the first ones and the last may hold some of a neighbour's.
    let (from, to) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
    STANDARD.encode(&padded).as_bytes()[from..to].to_vec()
}

/// When a conversation is broken off: quiet, or too long without it.
struct Ending {
    began: Option<Instant>,
    last: Option<Instant>,
}

impl Ending {
    fn heard(&mut self) {
        self.last = Some(Instant::now());
        self.began = self.began.or(self.last);
    }

    /// Until then nothing is broken off; none while nothing was said.
    fn at(&self) -> Option<Instant> {
        let (began, last) = (self.began?, self.last?);
        Some((last + QUIET).min(began + NEVER_QUIET))
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
    let mut ending = Ending { began: None, last: None };
    let mut asked_to_go_on = false;
    let mut answer = vec![0; 1 << 16];
    loop {
        counting.said.reserve(1 << 16);
        let is_ending = conduct == Conduct::Resets && (!has_words || counting.counted > 0);
        tokio::select! {
            read = stream.read_buf(&mut counting.said) => {
                let Ok(length @ 1..) = read else {
                    return said_all(&stream, conduct, is_ending && ending.began.is_some()).await;
                };
                counting.note(length, &mut heard.lock().unwrap_or_else(PoisonError::into_inner));
                if !has_words || counting.counted > 0 {
                    ending.heard();
                }
                if counting.counted > 0 {
                    // It never sees the request, and what it says is heard no more.
                    member = None;
                }
                if member.is_none() && !asked_to_go_on && counting.waits_to_go_on() {
                    asked_to_go_on = true;
                    if stream.write_all(GO_ON).await.is_err() {
                        return;
                    }
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
            () = until(ending.at().filter(|_| is_ending)) => {
                let _ = stream.set_zero_linger();
                return;
            }
        }
    }
}

/// A client said all that it wants to say, and may listen still.
async fn said_all(stream: &TcpStream, conduct: Conduct, is_ending: bool) {
    if is_ending {
        let _ = stream.set_zero_linger();
    } else if conduct == Conduct::IsSilent {
        tokio::time::sleep(PATIENCE + GRACE).await;
    }
}

/// Waits until that moment; for ever where there is none.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a test waits for what must come.
    const LIMIT: Duration = Duration::from_secs(5);

    #[test]
    fn requests_are_known_by_their_value_and_transactions_by_their_words() {
        let is_begun_only = |pieces: &[&str]| {
            let (mut counting, mut heard) = (Counting::new(), Heard::default());
            for piece in pieces {
                counting.said.extend(piece.as_bytes());
                counting.note(piece.len(), &mut heard);
            }
            heard.is_begun_only
        };
        assert!(is_begun_only(&["start transac", "tion; insert into t values (1)"]));
        assert!(!is_begun_only(&["begin; insert into t values (1); com", "mit"]));
        assert!(!is_begun_only(&["insert into t values (1)"]));
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

    #[test]
    fn a_value_is_known_in_base64_wherever_it_stands_in_what_was_encoded() {
        for before in ["", "x", "xy", "{\"key\":1,\"value\":"] {
            for after in ["", "}", "}\n"] {
                let (mut counting, mut heard) = (Counting::new(), Heard::default());
                counting.said = STANDARD.encode(format!("{before}{VALUE}{after}")).into_bytes();
                counting.note(counting.said.len(), &mut heard);
                assert_eq!(heard.requests, 1, "{before}…{after}");
            }
        }
        let (mut counting, mut heard) = (Counting::new(), Heard::default());
        counting.said = STANDARD.encode("724105812 724105814").into_bytes();
        counting.note(counting.said.len(), &mut heard);
        assert_eq!(heard.requests, 0, "another value");
    }

    /// What a client says before the value, in writes of its own.
    fn before_the_value() -> Vec<Vec<String>> {
        let mut said: Vec<Vec<String>> =
            [10, 68, 100, 10_000].iter().map(|bytes| vec!["x".repeat(*bytes)]).collect();
        said.push(vec!["PUT /1 HTTP/1.1\r\nContent-Length: 9\r\n\r\n".to_owned(), String::new()]);
        said.push(vec!["*3\r\n$3\r\nSET\r\n".to_owned(), "$1\r\n1\r\n".to_owned(), "$9\r\n".to_owned()]);
        said
    }

    #[tokio::test]
    async fn a_request_is_heard_to_its_end_before_its_connection_is_reset() {
        for pieces in before_the_value() {
            let member = Member::open(Conduct::Resets, &Behind::Words(Vec::new())).await.expect("a port");
            let mut client = TcpStream::connect(member.address).await.expect("connected");
            client.set_nodelay(true).expect("set");
            for piece in &pieces {
                client.write_all(piece.as_bytes()).await.expect("not broken off");
                // Whoever reads has its turn between two writes.
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            }
            client.write_all(VALUE.to_string().as_bytes()).await.expect("not broken off");
            client.write_all("x".repeat(10_000).as_bytes()).await.expect("not broken off");
            let broken = client.read(&mut [0; 8]).await.expect_err("the connection is reset");
            assert_eq!(broken.kind(), std::io::ErrorKind::ConnectionReset);
            assert_eq!(member.heard().requests, 1, "{pieces:?}");
        }
    }

    #[tokio::test]
    async fn a_client_that_never_falls_quiet_or_says_no_value_is_broken_off_as_well() {
        let member = Member::open(Conduct::Resets, &Behind::Words(Vec::new())).await.expect("a port");
        let mut hello = TcpStream::connect(member.address).await.expect("connected");
        hello.write_all(b"HELLO").await.expect("sent");
        assert!(hello.read(&mut [0; 8]).await.is_err(), "who waits for a hand to shake");
        let mut talks = TcpStream::connect(member.address).await.expect("connected");
        let deadline = Instant::now() + LIMIT;
        while talks.write_all(b"more").await.is_ok() {
            assert!(Instant::now() < deadline, "it may talk for ever");
            tokio::task::yield_now().await;
        }
        assert_eq!(member.heard().requests, 0);
    }

    #[tokio::test]
    async fn a_body_that_waits_to_be_asked_for_is_asked_for() {
        let member = Member::open(Conduct::Resets, &Behind::Words(Vec::new())).await.expect("a port");
        let mut client = TcpStream::connect(member.address).await.expect("connected");
        client.write_all(b"PUT /1 HTTP/1.1\r\nExpect: 100-continue\r\n\r\n").await.expect("sent");
        let mut go_on = vec![0; GO_ON.len()];
        client.read_exact(&mut go_on).await.expect("it is asked");
        client.write_all(VALUE.to_string().as_bytes()).await.expect("sent");
        assert!(client.read(&mut [0; 8]).await.is_err(), "the connection is reset");
        assert_eq!(member.heard().requests, 1);
    }

    #[tokio::test]
    async fn a_client_that_will_say_no_more_is_reset_or_left_in_silence() {
        for conduct in [Conduct::Resets, Conduct::IsSilent] {
            let member = Member::open(conduct, &Behind::Words(Vec::new())).await.expect("a port");
            let mut client = TcpStream::connect(member.address).await.expect("connected");
            client.write_all(VALUE.to_string().as_bytes()).await.expect("sent");
            client.shutdown().await.expect("its half of the connection ends");
            let mut nothing = [0; 8];
            let answered = tokio::time::timeout(QUIET * 2, client.read(&mut nothing)).await;
            match conduct {
                Conduct::Resets => assert!(answered.expect("at once").is_err()),
                _ => assert!(answered.is_err(), "silence is no end"),
            }
        }
    }

    async fn until_heard(member: &Member, requests: usize) {
        let deadline = Instant::now() + LIMIT;
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
