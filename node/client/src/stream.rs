//! What carries bytes: a socket, in the clear or with TLS.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::unconstrained;
use tokio_rustls::client::TlsStream;

/// A connection.
#[derive(Debug)]
pub(crate) enum Stream {
    /// In the clear.
    Plain(TcpStream),
    /// With TLS.
    Tls(Box<TlsStream<TcpStream>>),
}

/// What a connection was waited for.
pub(crate) enum Turn {
    /// A read ended: so many bytes, 0 at the end of the stream.
    Read(io::Result<usize>),
    /// It may be written to again.
    Writable,
}

impl Stream {
    /// Waits for bytes; where `blocked`, also until the connection takes bytes again. Nothing is lost when
    /// the wait is given up.
    pub(crate) async fn turn(&mut self, into: &mut BytesMut, blocked: bool) -> Turn {
        poll_fn(|cx| {
            if let Poll::Ready(read) = self.poll_read(cx, into) {
                return Poll::Ready(Turn::Read(read));
            }
            if self.poll_writable(cx, blocked) { Poll::Ready(Turn::Writable) } else { Poll::Pending }
        })
        .await
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut BytesMut) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => pin!(stream.read_buf(into)).poll(cx),
            Self::Tls(stream) => pin!(stream.read_buf(into)).poll(cx),
        }
    }

    /// True when a blocked writer may try again. What TLS holds back moves on meanwhile.
    fn poll_writable(&mut self, cx: &mut Context<'_>, blocked: bool) -> bool {
        match self {
            Self::Plain(stream) => blocked && stream.poll_write_ready(cx).is_ready(),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx).is_ready() && blocked,
        }
    }

    /// One read without waiting.
    pub(crate) fn try_read(&mut self, into: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.try_read_buf(into),
            Self::Tls(stream) => {
                let mut cx = Context::from_waker(Waker::noop());
                match pin!(unconstrained(stream.read_buf(into))).poll(&mut cx) {
                    Poll::Ready(read) => read,
                    Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
                }
            }
        }
    }

    /// One write without waiting. TLS may have taken bytes that the kernel has not.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.try_write(bytes),
            Self::Tls(stream) => {
                let mut cx = Context::from_waker(Waker::noop());
                match pin!(unconstrained(stream.write(bytes))).poll(&mut cx) {
                    Poll::Ready(written) => written,
                    Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
                }
            }
        }
    }

    /// Writes all of it and waits until it is out.
    pub(crate) async fn send(&mut self, bytes: &mut BytesMut) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes).await?,
            Self::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await?;
            }
        }
        bytes.advance(bytes.len());
        Ok(())
    }

    /// Waits for bytes; 0 at the end of the stream.
    pub(crate) async fn read(&mut self, into: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read_buf(into).await,
            Self::Tls(stream) => stream.read_buf(into).await,
        }
    }
}
