//! A proxy on threads of its own, for programs that are not asynchronous.

use std::future::Future;
use std::io;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

/// A proxy that was started; it ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Running {
    /// Runs `serve` with so many threads for its work; what it is given is there when it is to end.
    pub(crate) fn start<F>(
        name: &str,
        threads: usize,
        serve: impl FnOnce(oneshot::Receiver<()>) -> F + Send + 'static,
    ) -> io::Result<Self>
    where
        F: Future<Output = io::Result<()>>,
    {
        let mut builder = match threads {
            0 | 1 => tokio::runtime::Builder::new_current_thread(),
            threads => {
                let mut builder = tokio::runtime::Builder::new_multi_thread();
                builder.worker_threads(threads);
                builder
            }
        };
        let runtime = builder.enable_io().enable_time().thread_name(name).build()?;
        let (stop, stopped) = oneshot::channel();
        let work = move || {
            let served = runtime.block_on(serve(stopped));
            // A lookup that hangs is not waited for.
            runtime.shutdown_background();
            served
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Takes nothing new, ends what is open as this kind of proxy does, and waits for it.
    ///
    /// # Errors
    /// When the proxy had failed.
    pub fn stop(mut self) -> io::Result<()> {
        self.halt()
    }

    /// Begins to end it as [`Self::stop`] does, and waits for nothing.
    pub fn end(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until the proxy ends by itself.
    ///
    /// # Errors
    /// When it failed.
    pub fn wait(mut self) -> io::Result<()> {
        self.join()
    }

    fn halt(&mut self) -> io::Result<()> {
        self.end();
        self.join()
    }

    fn join(&mut self) -> io::Result<()> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(served)) => served,
            Some(Err(_)) => Err(io::Error::other("the proxy ended by a panic")),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.halt();
    }
}
