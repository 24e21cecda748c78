//! What each address answers.

mod changes;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse as _};
use axum::routing::{get, post};
use serde::Deserialize;
use tokio::sync::{Semaphore, watch};
use wardkeep_monitor::index::Verdict;

use super::confirm::{Change, Confirmations};
use super::door::{Config, Door, Refusal};
use super::html::{Said, page};
use super::live;
use super::office::{EventsAsked, Office, Outcome, Trouble};
use super::views;

/// Longest form: a policy, escaped.
const MAX_FORM: usize = 256 << 10;
/// How long all of a form may take.
const FORM: Duration = Duration::from_secs(10);
/// Live views at a time.
const LIVE: usize = 16;
/// Records on a page.
const ROWS: u32 = 50;
/// No script but our own file, nothing from elsewhere, not in a frame.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
                      img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What all requests share.
pub(super) struct Desk {
    door: Door,
    office: Arc<dyn Office>,
    confirmations: Mutex<Confirmations>,
    news: watch::Sender<u64>,
    ended: watch::Receiver<bool>,
    live: Arc<Semaphore>,
    random: Box<dyn Fn() -> io::Result<String> + Send + Sync>,
}

impl Desk {
    pub(super) fn new(
        config: Config,
        office: Arc<dyn Office>,
        news: watch::Sender<u64>,
        ended: watch::Receiver<bool>,
        random: Box<dyn Fn() -> io::Result<String> + Send + Sync>,
    ) -> Self {
        Self {
            door: Door::new(config),
            office,
            confirmations: Mutex::default(),
            news,
            ended,
            live: Arc::new(Semaphore::new(LIVE)),
            random,
        }
    }

    /// Says when the page is to end.
    pub(super) fn ended(&self) -> watch::Receiver<bool> {
        self.ended.clone()
    }

    /// Looks something up where it may take its time.
    async fn ask<T: Send + 'static>(
        &self,
        look: impl FnOnce(&dyn Office) -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        let office = Arc::clone(&self.office);
        let looked = tokio::task::spawn_blocking(move || look(office.as_ref())).await;
        looked.unwrap_or_else(|_| {
            Err(Trouble::new("the answer broke off", "look at the log, and try again"))
        })
    }

    /// Keeps a change until it is confirmed; the word for the form.
    fn keep(&self, change: Change) -> Outcome<String> {
        let word = (self.random)().map_err(|error| {
            Trouble::new(format!("there is no randomness ({error})"), "try again")
        })?;
        let mut all = self.confirmations.lock().unwrap_or_else(PoisonError::into_inner);
        all.put(word.clone(), change, Instant::now());
        Ok(word)
    }

    fn take(&self, word: &str) -> Outcome<Change> {
        let mut all = self.confirmations.lock().unwrap_or_else(PoisonError::into_inner);
        all.take(word, Instant::now()).ok_or_else(|| {
            Trouble::new(
                "this confirmation was used already, or is too old",
                "go back, look at it again, and confirm within two minutes",
            )
        })
    }
}

type Page = Result<Response<Body>, Instead>;

/// Why there is another page instead.
enum Instead {
    Trouble(Box<Trouble>),
    Refusal(Refusal),
}

impl From<Trouble> for Instead {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(Box::new(trouble))
    }
}

impl axum::response::IntoResponse for Instead {
    fn into_response(self) -> Response<Body> {
        match self {
            Self::Trouble(why) => trouble(&why),
            Self::Refusal(refusal) => refused(refusal),
        }
    }
}

/// The addresses.
pub(super) fn router(desk: Arc<Desk>) -> Router {
    Router::new()
        .route("/", get(now))
        .route("/timeline", get(timeline))
        .route("/timeline/rows", get(rows))
        .route("/live", get(news))
        .route("/record/{id}", get(record))
        .route("/requests", get(requests))
        .route("/requests/{id}", get(request).post(changes::answer))
        .route("/proposals", get(proposals).post(changes::propose))
        .route("/policy", get(policies).post(changes::edit))
        .route("/skills", get(skills))
        .route("/models", get(models))
        .route("/evidence", get(chain).post(changes::verify))
        .route("/report", get(report))
        .route("/confirm", post(changes::confirm))
        .fallback(nothing)
        .layer(middleware::from_fn_with_state(Arc::clone(&desk), guard))
        // What is needed before there is a cookie.
        .route("/enter/{word}", get(enter))
        .route("/page.css", get(style))
        .route("/page.js", get(script))
        .route("/icon.svg", get(icon))
        // A form was read and measured before anything of it is used.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(Arc::clone(&desk), outer))
        .with_state(desk)
}

/// For every request: whom it is for. For every answer: what a browser may do with it.
async fn outer(State(desk): State<Arc<Desk>>, request: Request, next: Next) -> Response<Body> {
    let mut response = match desk.door.host(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refused(refusal),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With none at all, browsers do not say where a form comes from.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        // The report has a policy of its own that is as strict, the way in one that is stricter.
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    response
}

/// For all but the way in: who asks, and from where.
async fn guard(State(desk): State<Arc<Desk>>, request: Request, next: Next) -> Response<Body> {
    let looks = matches!(request.method().as_str(), "GET" | "HEAD");
    let checked = desk.door.known(request.headers()).and_then(|()| match looks {
        true => desk.door.looks(request.headers()),
        false => desk.door.own(request.headers()),
    });
    match checked {
        Ok(()) if looks => next.run(request).await,
        Ok(()) => match whole_form(request).await {
            Ok(request) => next.run(request).await,
            Err(status) => status.into_response(),
        },
        Err(refusal) => refused(refusal),
    }
}

/// A request with all of its form, which must come soon and be no longer than forms are.
async fn whole_form(request: Request) -> Result<Request, StatusCode> {
    let (head, body) = request.into_parts();
    let read = tokio::time::timeout(FORM, axum::body::to_bytes(body, MAX_FORM)).await;
    match read {
        Ok(Ok(bytes)) => Ok(Request::from_parts(head, Body::from(bytes))),
        Ok(Err(_)) => Err(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

fn refused(refusal: Refusal) -> Response<Body> {
    let (status, text) = match refusal {
        Refusal::Host => (
            StatusCode::MISDIRECTED_REQUEST,
            "This address is not the page's own: use the link that `wardkeep serve` printed.",
        ),
        Refusal::Origin => (StatusCode::FORBIDDEN, "This did not come from the page itself."),
        Refusal::Stranger => (
            StatusCode::UNAUTHORIZED,
            "Open the link that `wardkeep serve` printed. It works once: for another browser, start it anew.",
        ),
    };
    whole(status, "", "Not for you", &format!("<p>{}</p>\n", Said(text)))
}

fn whole(status: StatusCode, here: &str, title: &str, body: &str) -> Response<Body> {
    (status, Html(page(here, title, body))).into_response()
}

fn trouble(trouble: &Trouble) -> Response<Body> {
    let status = if trouble.missing { StatusCode::NOT_FOUND } else { StatusCode::CONFLICT };
    let body = format!(
        "<p class=\"bad\">{}</p>\n<p>What to do: {}</p>\n",
        Said(&trouble.message),
        Said(&trouble.next)
    );
    whole(status, "", "That did not work", &body)
}

fn shown<T>(outcome: Outcome<T>, here: &str, title: &str, view: impl FnOnce(&T) -> String) -> Page {
    match outcome {
        Ok(found) => Ok(whole(StatusCode::OK, here, title, &view(&found))),
        Err(why) => Err(why.into()),
    }
}

async fn enter(
    State(desk): State<Arc<Desk>>,
    method: Method,
    Path(word): Path<String>,
) -> Response<Body> {
    // Who only asks whether it is there does not use it up.
    if method != Method::GET {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let Some(cookie) = desk.door.enter(&word) else {
        return refused(Refusal::Stranger);
    };
    // By a page and not by a redirect: a strict cookie goes along only from a page of its own.
    let text = "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">\
                <meta http-equiv=\"refresh\" content=\"0; url=/\"><title>Wardkeep</title></head>\
                <body><p><a href=\"/\">Go on</a></p></body></html>\n";
    let mut response = Html(text).into_response();
    let nowhere = HeaderValue::from_static("no-referrer");
    response.headers_mut().insert(header::REFERRER_POLICY, nowhere);
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

async fn style() -> impl axum::response::IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("assets/page.css"))
}

async fn script() -> impl axum::response::IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("assets/page.js"))
}

async fn icon() -> impl axum::response::IntoResponse {
    ([(header::CONTENT_TYPE, "image/svg+xml")], include_str!("assets/icon.svg"))
}

async fn nothing() -> Response<Body> {
    trouble(&Trouble::missing("There is nothing at this address.", "choose a view above"))
}

async fn now(State(desk): State<Arc<Desk>>) -> Page {
    let posture = desk.ask(|office| office.posture()).await;
    shown(posture, "/", "Now", views::now::view)
}

/// The filters of the timeline, as a form sends them: what is empty is none.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Filters {
    pub(super) session: String,
    pub(super) agent: String,
    pub(super) kind: String,
    pub(super) severity: String,
    pub(super) category: String,
    pub(super) verdict: String,
    pub(super) text: String,
    pub(super) below: Option<u64>,
    pub(super) from: Option<u64>,
}

impl Filters {
    fn asked(&self) -> Outcome<EventsAsked> {
        fn word<T: std::str::FromStr>(text: &str) -> Outcome<Option<T>> {
            let unknown =
                |_| Trouble::new(format!("`{text}` is not known"), "choose another filter");
            (!text.is_empty()).then(|| text.parse().map_err(unknown)).transpose()
        }
        let verdict = |text: &str| -> Outcome<Option<Verdict>> {
            let known = Verdict::ALL.into_iter().find(|one| one.as_str() == text);
            match known {
                None if !text.is_empty() => {
                    Err(Trouble::new("this verdict is not known", "choose another filter"))
                }
                known => Ok(known),
            }
        };
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Ok(EventsAsked {
            session: text(&self.session),
            agent: text(&self.agent),
            kind: text(&self.kind),
            severity: word(&self.severity)?,
            category: word(&self.category)?,
            verdict: verdict(&self.verdict)?,
            text: text(&self.text),
            below: self.below,
            from: self.from,
            limit: ROWS,
        })
    }
}

async fn timeline(State(desk): State<Arc<Desk>>, Query(filters): Query<Filters>) -> Page {
    let asked = filters.asked()?;
    let events = desk.ask(move |office| office.events(&asked)).await;
    shown(events, "/timeline", "Timeline", |events| views::timeline::view(&filters, events))
}

/// Only the rows, for the live view.
async fn rows(State(desk): State<Arc<Desk>>, Query(filters): Query<Filters>) -> Page {
    let asked = filters.asked()?;
    match desk.ask(move |office| office.events(&asked)).await {
        Ok(events) => Ok(Html(views::timeline::rows(&events)).into_response()),
        Err(why) => Err(why.into()),
    }
}

async fn news(State(desk): State<Arc<Desk>>) -> Response<Body> {
    match Arc::clone(&desk.live).try_acquire_owned() {
        Ok(place) => live::stream(desk.news.subscribe(), desk.ended(), place),
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

async fn record(State(desk): State<Arc<Desk>>, Path(id): Path<String>) -> Page {
    let record = desk.ask(move |office| office.record(&id)).await;
    shown(record, "/timeline", "Record", views::record::view)
}

async fn requests(State(desk): State<Arc<Desk>>) -> Page {
    let requests = desk.ask(|office| office.requests()).await;
    shown(requests, "/requests", "Requests", views::requests::view)
}

async fn request(State(desk): State<Arc<Desk>>, Path(id): Path<String>) -> Page {
    let found = desk.ask(move |office| office.request(&id)).await;
    let form = desk.door.form().to_owned();
    shown(found, "/requests", "Request", |shown| views::requests::one(shown, &form))
}

async fn proposals(State(desk): State<Arc<Desk>>) -> Page {
    let staged = desk.ask(|office| office.staged()).await;
    let form = desk.door.form().to_owned();
    shown(staged, "/proposals", "Proposals", |staged| views::proposals::view(staged, &form))
}

async fn policies(State(desk): State<Arc<Desk>>) -> Page {
    let policies = desk.ask(|office| office.policies()).await;
    let form = desk.door.form().to_owned();
    shown(policies, "/policy", "Policy", |policies| views::policy::view(policies, &form))
}

async fn skills(State(desk): State<Arc<Desk>>) -> Page {
    let skills = desk.ask(|office| office.skills()).await;
    shown(skills, "/skills", "Skills", views::skills::view)
}

async fn models(State(desk): State<Arc<Desk>>) -> Page {
    let models = desk.ask(|office| office.models()).await;
    shown(models, "/models", "Model API", |models| views::models::view(models.as_ref()))
}

async fn chain(State(desk): State<Arc<Desk>>) -> Page {
    let chain = desk.ask(|office| office.chain()).await;
    let form = desk.door.form().to_owned();
    shown(chain, "/evidence", "Evidence", |chain| views::chain::view(chain, &form))
}

async fn report(State(desk): State<Arc<Desk>>) -> Page {
    match desk.ask(|office| office.report()).await {
        Ok(text) => {
            let mut response = Html(text).into_response();
            // It carries its style in itself, and runs nothing.
            let policy = HeaderValue::from_static(
                "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
                 frame-ancestors 'none'",
            );
            response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
            Ok(response)
        }
        Err(why) => Err(why.into()),
    }
}
