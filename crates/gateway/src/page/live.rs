//! News: how many records there are, as it changes.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::channel::Channel;
use hyper::Response;
use hyper::header;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::office::Office;

/// How often it is looked.
const PAUSE: Duration = Duration::from_millis(500);
/// How often a quiet connection hears something, so that one that is gone is noticed.
const ALIVE: Duration = Duration::from_secs(15);

/// Looks for news as long as someone listens.
pub(super) async fn look(office: Arc<dyn Office>, news: watch::Sender<u64>) {
    loop {
        tokio::time::sleep(PAUSE).await;
        if news.receiver_count() == 0 {
            continue;
        }
        let office = Arc::clone(&office);
        let Ok(Ok(records)) = tokio::task::spawn_blocking(move || office.records()).await else {
            continue;
        };
        news.send_if_modified(|known| std::mem::replace(known, records) != records);
    }
}

/// An answer that tells how many records there are, at once and whenever there are more.
pub(super) fn stream(
    mut news: watch::Receiver<u64>,
    mut ended: watch::Receiver<bool>,
    place: OwnedSemaphorePermit,
) -> Response<Body> {
    let (mut sender, body) = Channel::<Bytes>::new(4);
    news.mark_changed();
    tokio::spawn(async move {
        let _place = place;
        loop {
            let changed = tokio::select! {
                changed = tokio::time::timeout(ALIVE, news.changed()) => changed,
                _ = ended.wait_for(|ended| *ended) => return,
            };
            let text = match changed {
                Ok(Ok(())) => format!("data: {}\n\n", *news.borrow_and_update()),
                // The page ends.
                Ok(Err(_)) => return,
                Err(_) => ":\n\n".to_owned(),
            };
            if sender.send_data(Bytes::from(text)).await.is_err() {
                return;
            }
        }
    });
    let mut response = Response::new(Body::new(body));
    let kind = header::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
