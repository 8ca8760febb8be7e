//! A browser as a child, driven over its debugging pipe.
//!
//! The protocol is JSON between zero bytes on descriptors 3 and 4. A shell moves the child's standard input
//! and output there, so nothing here needs more than the standard library. Every wait has a deadline; when
//! the pipe closes, the browser ends by itself, and its profile folder goes with the last owner.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longest wait for one answer of the browser, its start included.
const PATIENCE: Duration = Duration::from_secs(60);

/// Browsers take turns: several at once would only make each of them late.
static TURN: Mutex<()> = Mutex::new(());

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    next: u64,
    session: String,
    /// What the browser told without being asked.
    pub(crate) events: VecDeque<Value>,
    profile: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

/// The browser's executable: `$CHROME`, or the first of its usual names in `$PATH`.
fn executable() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROME").filter(|named| !named.is_empty()) {
        return Some(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|candidate| candidate.is_file())
}

impl Browser {
    /// Starts a browser; none where there is none and nobody insists on one.
    pub(crate) fn start() -> Option<Self> {
        let Some(executable) = executable() else {
            let required = std::env::var_os("REQUIRE_BROWSER").is_some_and(|value| value == "1");
            assert!(!required, "no Chromium in PATH: install one, or name it in CHROME");
            eprintln!("skipped: no Chromium in PATH and none in CHROME");
            return None;
        };
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let profile = scratch().join(format!("profile-{}-{number}", std::process::id()));
        fs::create_dir_all(&profile).expect("a folder for the profile");
        let mut child = Command::new("sh")
            .arg("-c")
            .arg("exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1")
            .arg(&executable)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
            .args([
                "--remote-debugging-pipe",
                &format!("--user-data-dir={}", profile.display()),
                "about:blank",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the browser starts");
        let to = child.stdin.take();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while out.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { break };
                if sender.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let mut browser = Self {
            child,
            to,
            from,
            next: 0,
            session: String::new(),
            events: VecDeque::new(),
            profile,
            _turn: turn,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached =
            browser.call("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Asks for something and waits for the answer.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut request = json!({"id": self.next, "method": method, "params": params});
        if !self.session.is_empty() {
            request["sessionId"] = json!(self.session);
        }
        let mut bytes = request.to_string().into_bytes();
        bytes.push(0);
        self.to.as_mut().expect("open").write_all(&bytes).expect("the browser listens");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let message = self.receive(deadline, method);
            if message["id"] == self.next {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push_back(message);
        }
    }

    fn receive(&mut self, deadline: Instant, what: &str) -> Value {
        match self.from.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("the browser did not answer {what} within {PATIENCE:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("the browser ended during {what}"),
        }
    }

    /// Opens a file and waits until it is loaded.
    pub(crate) fn open(&mut self, file: &Path) {
        self.events.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}", file.display())}));
        let deadline = Instant::now() + PATIENCE;
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let message = self.receive(deadline, "loading the page");
            self.events.push_back(message);
        }
    }

    /// The screen: its width in px, and whether its reader prefers dark.
    pub(crate) fn screen(&mut self, width: u32, dark: bool) {
        self.media("", width, dark);
    }

    /// The same for `screen` or `print`.
    pub(crate) fn media(&mut self, media: &str, width: u32, dark: bool) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"media": media, "features": features}));
    }

    /// The value of an expression in the page; an exception fails the test.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{expression:.200}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Moves, presses or releases the pointer.
    pub(crate) fn pointer(&mut self, kind: &str, x: f64, y: f64, clicks: u32) {
        let button = if kind == "mouseMoved" && clicks == 0 { "none" } else { "left" };
        let held = u32::from(kind == "mousePressed" || (kind == "mouseMoved" && clicks > 0));
        let params =
            json!({"type": kind, "x": x, "y": y, "button": button, "buttons": held, "clickCount": clicks});
        self.call("Input.dispatchMouseEvent", params);
    }

    /// Presses and releases a key.
    pub(crate) fn key(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            self.call("Input.dispatchKeyEvent", json!({"type": kind, "key": key, "text": text}));
        }
    }

    /// Requests beyond the page itself, and everything that was said on the console.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        // An answer to a question asked now comes behind whatever was told before.
        self.eval("0");
        let mut documents = 0;
        let mut out = Vec::new();
        for event in &self.events {
            match event["method"].as_str().unwrap_or_default() {
                "Network.requestWillBeSent" => {
                    let first = event["params"]["type"] == "Document" && documents == 0;
                    documents += u32::from(first);
                    if !first {
                        out.push(format!("asks for {}", event["params"]["request"]["url"]));
                    }
                }
                "Log.entryAdded" => out.push(event["params"]["entry"]["text"].to_string()),
                "Runtime.consoleAPICalled" => out.push(event["params"]["args"].to_string()),
                "Runtime.exceptionThrown" => out.push(event["params"]["exceptionDetails"].to_string()),
                "Page.javascriptDialogOpening" => out.push(event["params"]["message"].to_string()),
                _ => {}
            }
        }
        out
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.to.take() {
            let _ = pipe.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.from.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok() {}
        if Instant::now() >= deadline {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        // Helpers of the browser may still write for a moment after it.
        while fs::remove_dir_all(&self.profile).is_err() && self.profile.exists() && Instant::now() < deadline
        {
            std::thread::yield_now();
        }
    }
}

/// A folder for pages and profiles, below the build's own.
pub(crate) fn scratch() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("browser");
    fs::create_dir_all(&folder).expect("a folder below target");
    folder
}
