"""A local server that sends what a test tells it to, faulty answers included."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = bytes | Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(answers: dict[str, Answer]) -> Iterator[str]:
    """The address of a server that gives `answers` by path; other paths are not found."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path)
            if answer is None:
                self.send_error(404)
            elif isinstance(answer, bytes):
                send(self, answer, len(answer))
            else:
                answer(self)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Clients hang up on purpose here."""

    httpd = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}"
    finally:
        httpd.shutdown()
        httpd.server_close()


def send(handler: BaseHTTPRequestHandler, body: bytes, claimed: int | None) -> None:
    """A complete answer, which states that length, or none."""
    handler.send_response(200)
    if claimed is not None:
        handler.send_header("Content-Length", str(claimed))
    handler.end_headers()
    handler.wfile.write(body)


def cut(body: bytes) -> Answer:
    """The first 50 bytes of an answer that claims to be all of `body`."""
    return lambda handler: send(handler, body[:50], len(body))


def without_length(body: bytes) -> Answer:
    return lambda handler: send(handler, body, None)


def redirect(place: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", place)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer
