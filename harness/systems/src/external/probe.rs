//! How a member is asked whether it serves, and whether it leads.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runs::clock::whole_milliseconds;
use runs::member::MemberId;
use runs::results::LeaderSeen;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::file::{Description, How, Members, Probe};
use super::template::{self, Outside};
use crate::Async;
use crate::look::{Look, PortState, Ran, Role, Seen, Whereabouts, Whom};
use crate::program;

/// How long a member may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long one may take to show that anybody is at its port.
const PORT_PATIENCE: Duration = Duration::from_millis(300);
/// How long a command may take.
const EXEC_PATIENCE: Duration = Duration::from_secs(3);
/// A command is run four times a second at most.
const EXEC_PAUSE: Duration = Duration::from_millis(250);
/// And the pause behind it is so many times what it took: an engine starts a command in a container at some
/// cost.
const EXEC_PAUSES: u32 = 4;
/// Everybody else is asked so often.
const PAUSE: Duration = Duration::from_millis(50);
/// After so long without another byte an answer is over.
const QUIET: Duration = Duration::from_millis(40);
/// No answer that is of use is longer.
const MOST_BYTES: usize = 1 << 16;

/// What a member answered.
#[derive(Debug)]
enum Answer {
    /// What was expected.
    Good,
    /// Something else.
    Other,
    /// Nothing, and why.
    Nothing(io::Error),
}

/// Whom questions go to.
struct Asked {
    /// Where it is.
    member: Whereabouts,
    /// What placeholders stand for in what is sent to it.
    outside: Outside,
    /// What they stand for in a command that is run for it.
    commanded: Outside,
}

/// What placeholders stand for in what is sent to a member.
fn outside(description: &Description, member: &Whereabouts) -> Outside {
    let folder = description.folder.display().to_string();
    Outside { id: member.id.0, member: member.client, folder }
}

/// What they stand for in a command that is run for it.
pub(super) fn commanded(description: &Description, member: &Whereabouts) -> Outside {
    match (&description.members, &member.inside) {
        // A command there finds it at its own port.
        (Members::Containers(members), Some(_)) => Outside::within(member.id.0, members.client_port),
        _ => outside(description, member),
    }
}

impl Asked {
    fn new(description: &Description, member: &Whereabouts) -> Self {
        let (outside, commanded) = (outside(description, member), commanded(description, member));
        Self { member: member.clone(), outside, commanded }
    }

    /// What placeholders stand for in a question.
    fn whom(&self, probe: &Probe) -> &Outside {
        if matches!(probe.how, How::Exec(_)) { &self.commanded } else { &self.outside }
    }

    /// Where a question goes that is sent.
    fn address(&self, probe: &Probe) -> io::Result<SocketAddr> {
        let Some(port) = probe.at else { return Ok(self.member.client) };
        let unknown = || io::Error::other(format!("nobody knows where port {port} is found"));
        self.member.others.get(&port).copied().ok_or_else(unknown)
    }
}

/// Asks once, over a connection of its own: what is left of an answer must not be taken for the next.
async fn ask(probe: &Probe, asked: &Asked) -> Answer {
    let whom = asked.whom(probe);
    let filled = |text: &str| template::filled(text, whom.id, whom).map_err(io::Error::other);
    let answered = async {
        let expect = filled(&probe.expect)?;
        match &probe.how {
            How::Send(text) => send(asked.address(probe)?, filled(text)?.as_bytes(), &expect).await,
            How::Http(path) => http(asked.address(probe)?, &filled(path)?, &expect).await,
            How::Exec(words) => {
                let words = words.iter().map(|word| filled(word)).collect::<io::Result<Vec<String>>>()?;
                let ran = run(words, asked);
                let ran = tokio::time::timeout(EXEC_PATIENCE, ran).await;
                let ran = ran.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
                Ok(ran.succeeded() && contains(&ran.output, &expect))
            }
        }
    };
    match answered.await {
        Ok(true) => Answer::Good,
        Ok(false) => Answer::Other,
        Err(error) => Answer::Nothing(error),
    }
}

/// Sends the bytes and reads until the answer has in it what is expected, or is over: the connection ends, or
/// nothing more comes.
async fn send(member: SocketAddr, bytes: &[u8], expect: &str) -> io::Result<bool> {
    let mut stream = TcpStream::connect(member).await?;
    stream.set_nodelay(true)?;
    stream.write_all(bytes).await?;
    let mut answer = Vec::new();
    while answer.len() < MOST_BYTES {
        let begins = answer.is_empty();
        let read = stream.read_buf(&mut answer);
        // An answer may come in parts.
        let read = match begins {
            true => read.await?,
            false => match tokio::time::timeout(QUIET, read).await {
                Ok(read) => read?,
                Err(_) => return Ok(false),
            },
        };
        if contains(&answer, expect) {
            return Ok(true);
        }
        if read == 0 {
            return if answer.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(false) };
        }
    }
    Ok(false)
}

async fn http(member: SocketAddr, path: &str, expect: &str) -> io::Result<bool> {
    let mut stream = TcpStream::connect(member).await?;
    // Of HTTP/1.0, so that no answer comes in chunks, whose lengths would stand in what is looked for.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {member}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    let most = u64::try_from(MOST_BYTES).unwrap_or(u64::MAX);
    (&mut stream).take(most).read_to_end(&mut answer).await?;
    if answer.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    // `HTTP/1.1 200 OK`
    let status = answer.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    Ok(status.first() == Some(&b'2') && contains(&answer, expect))
}

/// Runs a command where the member is, or here in the folder of the file.
async fn run(words: Vec<String>, asked: &Asked) -> io::Result<Ran> {
    if let Some(inside) = &asked.member.inside {
        return inside.run(asked.member.id, words, EXEC_PATIENCE).await;
    }
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(&asked.commanded.folder);
    let output = program::output(command).await?;
    let status = output.status.code().map(i64::from);
    Ok(Ran { status, output: output.stdout, errors: output.stderr })
}

fn contains(answer: &[u8], expect: &str) -> bool {
    expect.is_empty() || answer.windows(expect.len()).any(|part| part == expect.as_bytes())
}

fn patience(probe: &Probe, usual: Duration) -> Duration {
    if matches!(probe.how, How::Exec(_)) { EXEC_PATIENCE } else { usual }
}

/// Whether anybody is at a member's client port.
pub(super) async fn port(description: Arc<Description>, member: Whereabouts) -> PortState {
    let probe = &description.ready;
    // A command that fails does not say whether anybody listens.
    if matches!(probe.how, How::Exec(_))
        && let Err(error) = TcpStream::connect(member.client).await
    {
        return PortState::of_error(&error);
    }
    let whom = Asked::new(&description, &member);
    let asked = ask(probe, &whom);
    match tokio::time::timeout(patience(probe, PORT_PATIENCE), asked).await {
        Ok(Answer::Good) => PortState::Answers,
        Ok(Answer::Nothing(error)) => PortState::of_error(&error),
        Ok(Answer::Other) | Err(_) => PortState::Silent,
    }
}

/// Whether a member is asked by a command.
fn runs_a_command(description: &Description) -> bool {
    let mut probes = [Some(&description.ready), description.leader.as_ref()].into_iter().flatten();
    probes.any(|probe| matches!(probe.how, How::Exec(_)))
}

/// The pause between two questions to a member.
fn pause(description: &Description) -> Duration {
    if runs_a_command(description) { EXEC_PAUSE } else { PAUSE }
}

/// How it is learned who leads.
pub(super) fn leader_seen(description: &Description) -> LeaderSeen {
    match description.leader {
        Some(_) => LeaderSeen::Asked { every_ms: whole_milliseconds(pause(description)) },
        None => LeaderSeen::Untold,
    }
}

/// What asks each of these members.
pub(super) fn looks(
    description: &Arc<Description>,
    members: &[Whereabouts],
    answers: &Arc<Mutex<Answers>>,
) -> Vec<Box<dyn Look>> {
    let claims = Arc::new(Mutex::new(Claims::default()));
    let runs_a_command = runs_a_command(description);
    let pause = pause(description);
    let looker = |member: &Whereabouts| -> Box<dyn Look> {
        Box::new(Looker {
            id: member.id,
            whom: Asked::new(description, member),
            description: Arc::clone(description),
            answers: Arc::clone(answers),
            claims: Arc::clone(&claims),
            pause,
            runs_a_command,
            next: Instant::now(),
        })
    };
    members.iter().map(looker).collect()
}

/// Who says that it leads. Such a system tells no epoch, so each beginning of a claim counts as one. Two may
/// claim it at once, as where one comes back from a cut: when the newer claim ends, the other begins anew.
#[derive(Debug, Default)]
struct Claims {
    claiming: BTreeMap<MemberId, u32>,
    newest: u32,
}

impl Claims {
    /// The epoch in which a member leads or follows, by what it says of itself.
    fn heard(&mut self, member: MemberId, leads: bool) -> Option<u32> {
        if !leads {
            if let Some(ended) = self.claiming.remove(&member)
                && ended == self.newest
                && let Some((_, epoch)) = self.claiming.iter_mut().max_by_key(|(_, epoch)| **epoch)
            {
                self.newest += 1;
                *epoch = self.newest;
            }
            return (self.newest > 0).then_some(self.newest);
        }
        let newest = &mut self.newest;
        let epoch = self.claiming.entry(member).or_insert_with(|| {
            *newest += 1;
            *newest
        });
        Some(*epoch)
    }
}

/// What each member answered last, in words, for whoever wonders why it does not serve.
pub(super) type Answers = BTreeMap<MemberId, String>;

/// Asks one member.
struct Looker {
    id: MemberId,
    whom: Asked,
    description: Arc<Description>,
    answers: Arc<Mutex<Answers>>,
    claims: Arc<Mutex<Claims>>,
    /// Between two looks, at least.
    pause: Duration,
    runs_a_command: bool,
    /// Not before.
    next: Instant,
}

impl Looker {
    fn heard(&self, leads: bool) -> Option<u32> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner).heard(self.id, leads)
    }

    /// Asks, and notes what was answered behind what `before` says.
    async fn asked(&self, before: &str, question: &str, probe: &Probe) -> Option<Answer> {
        let asked = tokio::time::timeout(patience(probe, PATIENCE), ask(probe, &self.whom)).await.ok();
        let words = match &asked {
            Some(Answer::Good) => "yes".to_owned(),
            Some(Answer::Other) => "no: it answers, and not what is expected".to_owned(),
            Some(Answer::Nothing(error)) => format!("no answer: {error}"),
            None => "no answer in time".to_owned(),
        };
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(self.id, format!("{before}{question}: {words}"));
        asked
    }

    async fn seen(&mut self) -> Seen {
        let description = Arc::clone(&self.description);
        match self.asked("", "ready", &description.ready).await {
            Some(Answer::Good) => {}
            Some(Answer::Other) => return self.serves_nobody(),
            Some(Answer::Nothing(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                return self.serves_nobody();
            }
            Some(Answer::Nothing(_)) | None => return Seen::Nothing,
        }
        let Some(probe) = &description.leader else { return Seen::Answers };
        let leads = match self.asked("ready: yes; ", "leader", probe).await {
            Some(Answer::Good) => true,
            Some(Answer::Other) => false,
            Some(Answer::Nothing(_)) | None => return Seen::Nothing,
        };
        match self.heard(leads) {
            Some(epoch) if leads => Seen::Serves(Role { whom: Whom::Itself, epoch }),
            Some(epoch) => Seen::Serves(Role { whom: Whom::Unsaid, epoch }),
            // Nobody has said yet that it leads.
            None => Seen::Nothing,
        }
    }

    fn serves_nobody(&self) -> Seen {
        self.heard(false);
        Seen::ServesNobody
    }
}

impl Look for Looker {
    fn look(&mut self) -> Async<'_, Seen> {
        Box::pin(async {
            tokio::time::sleep_until(self.next).await;
            let begun = Instant::now();
            let seen = self.seen().await;
            let took = begun.elapsed();
            let pause = if self.runs_a_command { self.pause.max(took * EXEC_PAUSES) } else { self.pause };
            self.next = Instant::now() + pause;
            seen
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_beginning_of_a_claim_is_an_epoch() {
        let mut claims = Claims::default();
        let mut heard = |member, leads| claims.heard(MemberId(member), leads);
        assert_eq!(heard(2, false), None, "nobody has led yet");
        assert_eq!((heard(1, true), heard(1, true), heard(2, false)), (Some(1), Some(1), Some(1)));
        // Both claim it for a while, as where one is cut off.
        assert_eq!((heard(2, true), heard(1, true), heard(3, false)), (Some(2), Some(1), Some(2)));
        assert_eq!((heard(1, false), heard(1, true)), (Some(2), Some(3)));
        // The newer claim ends, and the other leads on.
        assert_eq!((heard(1, false), heard(2, true), heard(1, false)), (Some(4), Some(4), Some(4)));
    }

    #[test]
    fn a_command_in_a_container_knows_the_member_as_itself_and_what_is_sent_knows_it_from_here() {
        struct Nothing;
        impl crate::look::Inside for Nothing {
            fn run(&self, _: MemberId, _: Vec<String>, _: Duration) -> Async<'static, io::Result<Ran>> {
                Box::pin(async { Ok(Ran::default()) })
            }
        }
        let text = "services:\n  a: { image: x }\nx-harness:\n  members: [a]\n  \
                    ports: { client: 6379, peers: [1] }\n  ready: { http: \"/{client}\", at: 7 }\n  \
                    leader: { exec: [\"ask\", \"{client}\"] }\n  client: { command: [c] }\n";
        let description = super::super::file::parse_compose(text, "/f".into()).expect("a file");
        let client = SocketAddr::from(([10, 0, 0, 2], 9));
        let mut member = Whereabouts::of(MemberId(1), client);
        member.inside = Some(Arc::new(Nothing));
        member.others.insert(7, SocketAddr::from(([10, 0, 0, 2], 70)));
        let asked = Asked::new(&description, &member);
        let leader = description.leader.as_ref().expect("it is asked who leads");
        let filled = |probe: &Probe, text| template::filled(text, 1, asked.whom(probe)).expect("known");
        assert_eq!(filled(&description.ready, "{client} {folder}"), "10.0.0.2:9 /f");
        assert_eq!(filled(leader, "{client}"), "127.0.0.1:6379");
        assert_eq!(asked.address(&description.ready).expect("known").port(), 70);
        assert_eq!(asked.address(leader).expect("known"), client);
    }

    #[tokio::test]
    async fn a_member_that_accepts_and_says_nothing_is_silent() {
        let text = "[member]\ncommand = [\"a\"]\nready = { send = \"PING\\n\", expect = \"PONG\" }\n\
                    [client]\ncommand = [\"a\"]\n";
        let description = super::super::file::parse(text, "x", std::path::PathBuf::new()).expect("a file");
        let description = Arc::new(description);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        assert_eq!(
            port(Arc::clone(&description), Whereabouts::of(MemberId(1), address)).await,
            PortState::Silent
        );
        let served = tokio::spawn(async move {
            let _unanswered = listener.accept().await.expect("the first");
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut asked = [0; 5];
            stream.read_exact(&mut asked).await.expect("a question");
            stream.write_all(b"+PONG\r\n").await.expect("an answer");
        });
        assert_eq!(
            port(Arc::clone(&description), Whereabouts::of(MemberId(1), address)).await,
            PortState::Answers
        );
        served.await.expect("served");
        // A port that nobody listens at, and that nobody else can take meanwhile.
        let taken = tokio::net::TcpSocket::new_v4().expect("a socket");
        taken.bind(([127, 0, 0, 1], 0).into()).expect("a port");
        let nowhere = taken.local_addr().expect("an address");
        assert_eq!(port(description, Whereabouts::of(MemberId(1), nowhere)).await, PortState::Refuses);
    }
}
