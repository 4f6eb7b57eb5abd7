//! The page in a real Chromium, driven by chromedriver (Debian: `chromium chromium-driver`). `tests/release page` runs it.
//! With `DOORWARD_PICTURES=FOLDER` it saves pictures of the demonstration, in four sizes, light and dark, and of its
//! terminal, which is tmux.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_proto::doorman::{GetCapacityRequest, ResourceRequest};
use doorward_tests::processes::{Server, program};
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use tonic::transport::Channel;

/// A text that would run as a script, and steers the direction of writing.
const EVIL: &str = "<img src=x onerror=\"brokenOut = true\">\u{202e}x";

/// A demonstration has the usual ports, so there is one at a time.
static DEMO: Mutex<()> = Mutex::const_new(());

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Starts a program, and returns what follows `before` in its output, up to a character that is none of an address.
fn start(command: &mut Command, before: &str) -> (Running, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = loop {
        let line = lines.next().expect("it says where it is").unwrap();
        if let Some((_, rest)) = line.split_once(before) {
            let end = rest.find([' ', '/', '.']).unwrap_or(rest.len());
            break match before.ends_with("//") {
                true => rest.split('/').next().unwrap().to_owned(),
                false => rest[..end].to_owned(),
            };
        }
    };
    std::thread::spawn(move || lines.for_each(drop));
    (Running(child), found)
}

/// A browser with a page.
struct Browser {
    page: Client,
    _driver: Running,
}

impl Browser {
    async fn start() -> Self {
        let mut driver = Command::new("chromedriver");
        let (driver, port) = start(driver.arg("--port=0"), "successfully on port ");
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ];
        let capabilities = json!({"goog:chromeOptions": {"args": arguments}});
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities.as_object().unwrap().clone());
        let page = builder.connect(&format!("http://127.0.0.1:{port}")).await;
        Self {
            page: page.unwrap(),
            _driver: driver,
        }
    }

    async fn js(&self, script: &str) -> Value {
        self.page.execute(script, Vec::new()).await.unwrap()
    }

    /// Waits until a script returns true. Returns how long that took.
    async fn until(&self, what: &str, script: &str) -> Duration {
        let began = Instant::now();
        while self.js(&format!("return Boolean({script})")).await != true {
            if began.elapsed() > Duration::from_secs(30) {
                panic!(
                    "{what}: {}",
                    self.js("return document.body.innerText").await
                );
            }
            sleep(Duration::from_millis(20)).await;
        }
        began.elapsed()
    }

    async fn save(&self, to: &Path, (width, height): (u32, u32), is_dark: bool) {
        self.page.set_window_size(width, height).await.unwrap();
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        let command = json!({"cmd": "Emulation.setEmulatedMedia", "params": features});
        self.page.issue_cmd(Cdp(command)).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        let picture = self.page.screenshot().await.unwrap();
        std::fs::create_dir_all(to).unwrap();
        std::fs::write(to.join(format!("page-{width}-{scheme}.png")), picture).unwrap();
    }
}

/// Returns the terminal of the demonstration after a while, as the body of a page.
async fn terminal() -> String {
    let tmux = |arguments: &[&str]| {
        let mut command = Command::new("tmux");
        let own = format!("doorward-{}", std::process::id());
        command.args(["-L", &own]).args(arguments);
        command.output().expect("tmux").stdout
    };
    let demo = format!("{} demo", program("doorward").display());
    tmux(&["new-session", "-d", "-x", "112", "-y", "23", &demo]);
    sleep(Duration::from_secs(25)).await;
    let shown = String::from_utf8(tmux(&["capture-pane", "-p", "-e"])).unwrap();
    tmux(&["kill-server"]);
    let mut body = "<style>:root { color-scheme: light dark; } pre { font: 14px/1.3 monospace; } \
                    .c2 { color: #3a9d5d } .c3 { color: #c08a1e } .c4 { color: #4a7fd0 } .b { font-weight: bold } \
                    .d { opacity: 0.6 } .r { background: CanvasText; color: Canvas }</style><pre>"
        .to_owned();
    let mut classes = Vec::new();
    for (index, part) in shown.split("\u{1b}[").enumerate() {
        let (codes, text) = match index {
            0 => ("", part),
            _ => part.split_once('m').unwrap(),
        };
        for code in codes.replace("38;5;", "c").split(';') {
            match code {
                "0" => classes.clear(),
                "1" => classes.push("b".to_owned()),
                "2" => classes.push("d".to_owned()),
                "7" => classes.push("r".to_owned()),
                "39" => classes.retain(|it| !it.starts_with('c')),
                color if color.starts_with('c') => classes.push(color.to_owned()),
                _ => {}
            }
        }
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        body += &format!("<span class='{}'>{text}</span>", classes.join(" "));
    }
    body
}

/// A command of Chromium's own protocol.
#[derive(Debug)]
struct Cdp(Value);

impl fantoccini::wd::WebDriverCompatibleCommand for Cdp {
    fn endpoint(
        &self,
        base: &url::Url,
        session: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        base.join(&format!(
            "session/{}/goog/cdp/execute",
            session.unwrap_or_default()
        ))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.0.to_string()))
    }
}

/// A server that shares 1,000 of any resource, and a client of it.
async fn served() -> (Server, CapacityClient<Channel>) {
    let server = Server::start(&["--http-listen", "127.0.0.1:0"]);
    let channel = Channel::from_shared(format!("http://{}", server.address)).unwrap();
    let client = CapacityClient::new(channel.connect().await.unwrap());
    (server, client)
}

async fn ask(client: &mut CapacityClient<Channel>, name: &str, resource: &str, wants: f64) {
    let request = GetCapacityRequest {
        client_id: name.to_owned(),
        resource: vec![ResourceRequest {
            resource_id: resource.to_owned(),
            wants,
            ..ResourceRequest::default()
        }],
        ..GetCapacityRequest::default()
    };
    client.get_capacity(request).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demonstration_says_who_shares_and_who_is_short() {
    let _one = DEMO.lock().await;
    let mut demo = Command::new(program("doorward"));
    demo.args(["demo", "--plain", "--for", "120s"]);
    let (_demo, address) = start(&mut demo, "root      http://");
    let browser = Browser::start().await;
    browser
        .page
        .goto(&format!("http://{address}/"))
        .await
        .unwrap();
    for text in [
        "10 clients share the 119 of demo",
        "eu-2",
        "us-1",
        "ml-148",
        "ml-112",
    ] {
        let script = format!("document.body.innerText.includes('{text}')");
        browser.until(text, &script).await;
    }
    if let Some(folder) = std::env::var_os("DOORWARD_PICTURES") {
        sleep(Duration::from_secs(30)).await;
        for size in [(1440, 1000), (1024, 768), (768, 1024), (390, 844)] {
            for is_dark in [false, true] {
                browser.save(Path::new(&folder), size, is_dark).await;
            }
        }
    }
    let is_wider = "document.documentElement.scrollWidth > innerWidth";
    browser.page.set_window_size(390, 844).await.unwrap();
    assert_eq!(browser.js(&format!("return {is_wider}")).await, false);
    if let Some(folder) = std::env::var_os("DOORWARD_PICTURES") {
        let script = format!("document.body.innerHTML = {}", json!(terminal().await));
        browser.page.goto("about:blank").await.unwrap();
        browser.js(&script).await;
        for is_dark in [false, true] {
            let folder = Path::new(&folder).join("terminal");
            browser.save(&folder, (1000, 590), is_dark).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_edits_plans_applies_and_undoes() {
    let _one = DEMO.lock().await;
    let mut demo = Command::new(program("doorward"));
    demo.args(["demo", "--plain", "--for", "120s"]);
    let (_demo, address) = start(&mut demo, "root      http://");
    let browser = Browser::start().await;
    let view = format!("http://{address}/?view=edit&kind=templates");
    browser.page.goto(&view).await.unwrap();
    let text = "document.getElementById('edit-text')";
    browser
        .until(
            "the text",
            &format!("{text}?.value.includes('capacity: 119')"),
        )
        .await;
    let edit = async |from: &str, to: &str| {
        let script = format!(
            "{text}.value = {text}.value.replace('{from}', '{to}');
             {text}.dispatchEvent(new Event('input', {{bubbles: true}}))"
        );
        browser.js(&script).await;
    };
    let click = async |name: &str| {
        let button = format!("document.getElementById('edit-{name}')");
        let is_ready = format!("{button} && !{button}.disabled");
        browser.until(name, &is_ready).await;
        browser.js(&format!("{button}.click()")).await;
    };
    let shows = async |text: &str| {
        let script = format!("document.body.innerText.includes({})", json!(text));
        browser.until(text, &script).await;
    };
    edit("119", "<img>").await;
    click("plan").await;
    shows("Line 4").await;
    shows("<img>").await;
    edit("<img>", "60").await;
    click("plan").await;
    shows("capacity 119 → 60").await;
    // Until the clients have asked, nobody loses anything.
    while browser
        .js("return document.body.innerText.includes('ml-148')")
        .await
        != true
    {
        click("plan").await;
        sleep(Duration::from_millis(500)).await;
    }
    if let Some(folder) = std::env::var_os("DOORWARD_PICTURES") {
        for size in [(1440, 1000), (390, 844)] {
            for is_dark in [false, true] {
                let folder = Path::new(&folder).join("edit");
                browser.save(&folder, size, is_dark).await;
            }
        }
    }
    // The demonstration kills the root once: then it is not there for some seconds.
    let is_applied = "document.body.innerText.includes('Applied.')";
    let again = format!(
        "const button = document.getElementById('edit-apply');
         if (!({is_applied}) && !button.disabled) button.click();
         return {is_applied}"
    );
    while browser.js(&again).await != true {
        sleep(Duration::from_millis(500)).await;
    }
    click("undo").await;
    shows("Undone").await;
    browser
        .page
        .goto(&format!("http://{address}/"))
        .await
        .unwrap();
    shows("share the 119 of demo").await;
    shows("templates written by 127.0.0.1: undo").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_seen_without_a_reload_and_hostile_names_stay_text() {
    let (mut server, mut client) = served().await;
    ask(&mut client, EVIL, "<b>orders", 120.0).await;
    let browser = Browser::start().await;
    let path = "resource?id=%3Cb%3Eorders";
    browser
        .page
        .goto(&format!("http://{}/{path}", server.pages()))
        .await
        .unwrap();
    let shows = |text: &str| format!("document.body.innerText.includes({})", json!(text));
    browser
        .until("the name as text", &shows("<img src=x onerror="))
        .await;
    browser
        .until("the resource as text", &shows("<b>orders"))
        .await;
    assert_eq!(
        browser
            .js("return typeof brokenOut + document.querySelectorAll('img').length")
            .await,
        "undefined0"
    );
    ask(&mut client, "another", "<b>orders", 345.0).await;
    let took = browser.until("the change", &shows("345")).await;
    println!("a change is seen after {took:.0?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_holders_are_listed_in_few_rows() {
    let (mut server, client) = served().await;
    let asks = (0..10_000).map(|number| {
        let mut client = client.clone();
        async move { ask(&mut client, &format!("client-{number:05}"), "big", 1.0).await }
    });
    use futures_util::StreamExt as _;
    futures_util::stream::iter(asks)
        .buffer_unordered(50)
        .for_each(async |()| {})
        .await;
    let browser = Browser::start().await;
    let began = Instant::now();
    browser
        .page
        .goto(&format!("http://{}/resource?id=big", server.pages()))
        .await
        .unwrap();
    browser
        .until("holders", "document.body.innerText.includes('client-')")
        .await;
    println!("10,000 holders are shown after {:.0?}", began.elapsed());
    let rows = browser
        .js("return document.querySelectorAll('tr').length")
        .await;
    let rows = rows.as_u64().unwrap();
    assert!((10..500).contains(&rows), "{rows}");
}
