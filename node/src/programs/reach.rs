//! How the programs reach the ensemble, and as whom.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use bytestring::ByteString;
use node_client::recipes::{Left, RecipeError};
use node_client::{Acl, ErrorCode, Keeper, KeeperError, KeeperOptions, OpError, Sasl, ServerList, Tls};
use node_wire::client::{PERM_ADMIN, PERM_CREATE, PERM_DELETE, PERM_READ, PERM_WRITE};

use super::{Common, duration};

/// The grace where none is said, and half of the time-out is not less.
const GRACE: Duration = Duration::from_secs(2);

/// As whom a program speaks, over what, and who may do what with its znodes.
#[derive(Clone, Debug, clap::Args)]
pub struct Identity {
    /// Show this identity, as in digest:ann:secret. Others of the machine see it in the list of processes:
    /// --auth-file does not show it
    #[arg(long, value_name = "SCHEME:PROOF", value_parser = identity)]
    auth: Vec<(ByteString, Bytes)>,

    /// Show the identities in this file, a line each as for --auth
    #[arg(long, value_name = "FILE")]
    auth_file: Option<PathBuf>,

    /// Prove this user by SASL (DIGEST-MD5)
    #[arg(long, value_name = "USER", requires = "sasl_password_file")]
    sasl_user: Option<String>,

    /// The file with the user's password
    #[arg(long, value_name = "FILE", requires = "sasl_user")]
    sasl_password_file: Option<PathBuf>,

    /// Speak TLS, and believe servers whose certificates the authorities in this PEM file signed
    #[arg(long, value_name = "FILE")]
    tls_trust: Option<PathBuf>,

    /// Show the certificate in this PEM file, which has its private key too
    #[arg(long, value_name = "FILE", requires = "tls_trust")]
    tls_identity: Option<PathBuf>,

    /// Expect this name in the servers' certificates, instead of the hosts that are dialled
    #[arg(long, value_name = "NAME", requires = "tls_trust")]
    tls_name: Option<String>,

    /// Who may do what with the znodes that are made, as zkCli writes it: auth::cdrwa is for this identity
    /// alone. Without it they are open to anyone, and anyone who reaches the ensemble may take the place away
    #[arg(long, value_name = "LIST", value_parser = acl)]
    acl: Option<AccessList>,
}

/// Who may do what.
type AccessList = std::sync::Arc<[Acl]>;

/// An ensemble that is reached.
#[derive(Debug)]
pub(super) struct Reached {
    /// The session.
    pub(super) keeper: Keeper,
    /// How long a command has between SIGTERM and SIGKILL.
    pub(super) grace: Duration,
    chroot: String,
}

/// An identity as `--auth` takes it.
fn identity(text: &str) -> Result<(ByteString, Bytes), String> {
    match text.split_once(':') {
        Some((scheme, proof)) if !scheme.is_empty() && !proof.is_empty() => {
            Ok((scheme.into(), Bytes::copy_from_slice(proof.as_bytes())))
        }
        _ => Err("write a scheme and its proof, as in digest:ann:secret".to_owned()),
    }
}

/// An access list as `--acl` takes it, and zkCli: `scheme:id:rights,scheme:id:rights`. An id may have colons.
fn acl(text: &str) -> Result<AccessList, String> {
    text.split(',').map(entry).collect()
}

fn entry(text: &str) -> Result<Acl, String> {
    let wrong =
        || format!("write scheme:id:rights with rights of cdrwa, as in auth::cdrwa, and not {text:?}");
    let (scheme, rest) = text.split_once(':').ok_or_else(wrong)?;
    let (id, rights) = rest.rsplit_once(':').ok_or_else(wrong)?;
    let bit = |right: char| match right {
        'c' => Some(PERM_CREATE),
        'd' => Some(PERM_DELETE),
        'r' => Some(PERM_READ),
        'w' => Some(PERM_WRITE),
        'a' => Some(PERM_ADMIN),
        _ => None,
    };
    let perms = rights.chars().try_fold(0, |perms, right| Some(perms | bit(right)?)).ok_or_else(wrong)?;
    if scheme.is_empty() || perms == 0 {
        return Err(wrong());
    }
    Ok(Acl { perms, scheme: scheme.into(), id: id.into() })
}

fn read(file: &Path, flag: &str) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("failed to read {} ({flag})", file.display()))
}

fn read_text(file: &Path, flag: &str) -> anyhow::Result<String> {
    String::from_utf8(read(file, flag)?)
        .map_err(|_| anyhow::anyhow!("failed to read {} ({flag}): it is no text", file.display()))
}

impl Identity {
    fn auths(&self) -> anyhow::Result<Vec<(ByteString, Bytes)>> {
        let mut auths = self.auth.clone();
        if let Some(file) = &self.auth_file {
            let text = read_text(file, "--auth-file")?;
            for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                // What is wrong is said without the line: it is a secret.
                let auth = identity(line.trim()).map_err(|wanted| {
                    anyhow::anyhow!("{wanted}, in line {} of {}", number + 1, file.display())
                })?;
                auths.push(auth);
            }
        }
        Ok(auths)
    }

    fn sasl(&self) -> anyhow::Result<Option<Sasl>> {
        let (Some(user), Some(file)) = (&self.sasl_user, &self.sasl_password_file) else { return Ok(None) };
        let password = read_text(file, "--sasl-password-file")?;
        Ok(Some(Sasl::digest_md5(user, password.trim_end_matches(['\r', '\n']))))
    }

    fn tls(&self) -> anyhow::Result<Option<Tls>> {
        let Some(trust) = &self.tls_trust else { return Ok(None) };
        let shown = self.tls_identity.as_ref().map(|file| read(file, "--tls-identity")).transpose()?;
        let tls = Tls::from_pem(&read(trust, "--tls-trust")?, shown.as_deref())
            .context("failed to use --tls-trust or --tls-identity")?;
        Ok(Some(match &self.tls_name {
            None => tls,
            Some(name) => {
                let name = name.clone().try_into();
                tls.with_name(name.map_err(|_| anyhow::anyhow!("--tls-name is no name of a host"))?)
            }
        }))
    }

    /// That `auth` in an access list stands for somebody.
    fn check_acl(&self) -> anyhow::Result<()> {
        let is_somebody = !self.auth.is_empty()
            || self.auth_file.is_some()
            || self.sasl_user.is_some()
            || self.tls_identity.is_some();
        let wants = self.acl.iter().flat_map(|list| list.iter()).any(|entry| entry.scheme == "auth");
        if wants && !is_somebody {
            bail!(
                "auth in --acl stands for an identity that is shown: add --auth-file, --sasl-user or \
                 --tls-identity"
            );
        }
        Ok(())
    }
}

impl Common {
    pub(super) async fn connect(&self) -> anyhow::Result<Reached> {
        self.identity.check_acl()?;
        let options = KeeperOptions {
            timeout: self.session_timeout,
            auth: self.identity.auths()?,
            sasl: self.identity.sasl()?,
            tls: self.identity.tls()?,
            ..KeeperOptions::default()
        };
        let named = self.server.clone().or_else(|| std::env::var("ZOOKEEPER_SERVERS").ok());
        let named = named.unwrap_or_else(|| "127.0.0.1:2181".to_owned());
        let servers: ServerList =
            named.parse().map_err(|error| anyhow::anyhow!("failed to reach {named}: {error}"))?;
        let chroot = servers.chroot().to_owned();
        let keeper = Keeper::connect(servers, options).await.map_err(|error| match error {
            KeeperError::AuthFailed => {
                anyhow::anyhow!("{named} refused the identity: correct --auth, --auth-file or --sasl-user")
            }
            error => anyhow::anyhow!("failed to reach {named}: {error}"),
        })?;
        let grace = match self.grace_of(keeper.timeout()) {
            Ok(grace) => grace,
            Err(error) => {
                // Nothing is held yet, and the session would end by itself.
                let _ = keeper.close().await;
                return Err(error);
            }
        };
        let keeper = match &self.identity.acl {
            Some(acl) => keeper.with_acl(acl.to_vec()),
            None => keeper,
        };
        Ok(Reached { keeper, grace, chroot })
    }

    /// The grace, which must fit the session's time-out as the ensemble granted it.
    fn grace_of(&self, granted: Duration) -> anyhow::Result<Duration> {
        let most = granted / 2;
        match self.grace {
            None => Ok(GRACE.min(most)),
            Some(grace) if grace <= most => Ok(grace),
            Some(grace) => bail!(
                "a grace of {} is more than half of the session's time-out, of which the ensemble granted {} \
                 ({} was asked for): use --grace {} or less",
                shown(grace),
                shown(granted),
                shown(self.session_timeout),
                shown(most),
            ),
        }
    }

    /// True if znodes are to be made with an access list.
    pub(super) fn has_acl(&self) -> bool {
        self.identity.acl.is_some()
    }
}

/// A time as [`duration`] reads it.
pub(super) fn shown(time: Duration) -> String {
    let ms = time.as_millis();
    let text = if ms.is_multiple_of(1000) { format!("{}s", ms / 1000) } else { format!("{ms}ms") };
    debug_assert!(duration(&text).is_ok());
    text
}

impl Reached {
    /// Makes the resource, and all above it, where it is not there.
    pub(super) async fn make(&self, resource: &str) -> anyhow::Result<()> {
        match self.keeper.create_all(resource).await {
            Ok(()) => Ok(()),
            Err(error) => {
                Err(self.explained(error, resource).await.context(format!("failed to make {resource}")))
            }
        }
    }

    /// Warns where the resource is open to anyone though what is made in it is not.
    pub(super) async fn warn_of_open(&self, common: &Common, resource: &ByteString) {
        if !common.has_acl() {
            return;
        }
        let Ok(answer) = self.keeper.get_acl(resource.clone()).await else { return };
        let all = PERM_CREATE | PERM_DELETE;
        if answer.value.acl.iter().any(|entry| entry.scheme == "world" && entry.perms & all != 0) {
            super::say(format_args!(
                "warning: {resource} is open to anyone, who may so delete what stands below it, whatever \
                 --acl says: set its access list"
            ));
        }
    }

    /// An error of this recipe's, and what to do.
    pub(super) async fn of_recipe(&self, error: RecipeError, resource: &str) -> anyhow::Error {
        match error {
            RecipeError::NoResource(_) if self.chroot_is_gone().await => self.no_chroot(resource),
            RecipeError::NoResource(_) => {
                anyhow::anyhow!("there is no {resource}: create it first, or use --create")
            }
            RecipeError::Failed(error) => self.explained(error, resource).await,
        }
    }

    /// What a refusal means for this znode, and what to do.
    pub(super) async fn explained(&self, error: OpError, znode: &str) -> anyhow::Error {
        match error.refusal() {
            Some(ErrorCode::NoNode) if self.chroot_is_gone().await => self.no_chroot(znode),
            Some(code) => anyhow::anyhow!(refused(code, znode)),
            None => error.into(),
        }
    }

    async fn chroot_is_gone(&self) -> bool {
        self.chroot != "/" && matches!(self.keeper.exists("/").await, Ok(reply) if reply.value.is_none())
    }

    fn no_chroot(&self, znode: &str) -> anyhow::Error {
        let chroot = &self.chroot;
        anyhow::anyhow!(
            "there is no {chroot}, which --server names behind the servers: create that znode first, or \
             leave it out of --server and write {chroot}{znode}"
        )
    }
}

/// Why the ensemble refused something with this znode, and what to do.
fn refused(code: ErrorCode, znode: &str) -> String {
    match code {
        ErrorCode::NoNode => format!("there is no {znode}: create it first"),
        ErrorCode::NoAuth => format!(
            "the access list of {znode}, or of a znode above it, does not let this program do that (NoAuth): \
             show an identity that is in it, by --auth-file, --sasl-user or --tls-identity"
        ),
        ErrorCode::InvalidAcl => {
            "the ensemble does not take the access list (InvalidAcl): correct --acl, and show \
             the identity that auth in it stands for"
                .to_owned()
        }
        ErrorCode::NoChildrenForEphemerals => {
            format!(
                "{znode}, or a znode above it, is ephemeral and so has none below it: choose another path"
            )
        }
        code => format!("the ensemble refused it for {znode}: {code:?}"),
    }
}

/// Why a contest for this resource is over, and what to do.
pub(super) fn left(why: Left, resource: &str) -> String {
    match why {
        Left::Refused(code) => refused(code, resource),
        Left::NoticeTooLong => {
            "the grace is more than half of the session's time-out, as another server granted \
             it: use a smaller --grace"
                .to_owned()
        }
        why => why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_lists_are_as_zkcli_writes_them() {
        let list = acl("auth::cdrwa,digest:ann:V28q/NynI4JI3Rk54h0r8O5kMug=:r").expect("a list");
        assert_eq!((list[0].perms, &list[0].id[..]), (31, ""));
        assert_eq!(&list[1].id[..], "ann:V28q/NynI4JI3Rk54h0r8O5kMug=");
        assert_eq!(list[1].perms, PERM_READ);
        for bad in ["", "auth", "auth:cdrwa", ":x:r", "world:anyone:", "world:anyone:rx", "auth::r,"] {
            assert!(acl(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_identity_is_a_scheme_and_a_proof() {
        assert_eq!(identity("digest:ann:se:cret"), Ok(("digest".into(), "ann:se:cret".into())));
        for bad in ["", "digest", "digest:", ":ann"] {
            assert!(identity(bad).is_err(), "{bad}");
        }
    }
}
