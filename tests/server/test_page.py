"""test_page.py - the chat page, in a real browser where there is one: send, stream, stop, reload, keys; nothing from outside."""
import re
import sys

import browser
import harness

ANSWER = "document.querySelector('article.assistant > div').innerText"
NOTE = "[...document.querySelectorAll('.statistics')].at(-1).innerText"
IDLE = "$('send').textContent === 'Send' && document.querySelectorAll('article').length"


class Page(harness.Case):
    def url(self, server):
        return f"http://127.0.0.1:{server.port}/"

    def test_the_file_alone(self):
        r = self.server.get("/")
        self.assertEqual((r.status, r.headers["content-type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", r.headers["content-security-policy"])
        text = r.body.decode()
        self.assertEqual(re.findall(r'(?:src|href)="(?!data:)', text), [])
        self.assertNotRegex(text, r"https?://")
        self.assertNotIn("innerHTML", text)
        self.assertEqual(self.server.call("HEAD", "/").status, 200)

    def test_send_stream_reload(self):
        if not browser.find():
            self.skipTest("no Chromium")
        with browser.Browser(self.url(self.server)) as b:
            b.until("document.readyState === 'complete' && $('model').textContent.includes('context 4096')")
            b.picture("1-open.png")
            # whether drafting pays is the machine's affair, unless the request says how many
            b.value("{ const ask = fetch; window.fetch = (to, o) => ask(to, o?.body ? { ...o, body: JSON.stringify({ "
                    "...JSON.parse(o.body), block: 4 }) } : o); 1 }")
            b.type("What is 5 plus 6? Think briefly.")
            b.press_enter()
            b.until(IDLE)
            text = b.until(ANSWER)
            self.assertFalse(b.value("document.querySelector('details').open"), "thoughts are folded")
            self.assertTrue(b.value("document.querySelector('details div').textContent"))
            self.assertRegex(b.value(NOTE), r"tokens/s · drafter: \d+ of \d+ accepted · [\d.]+ tokens a step · [\d.]+ × the speed without")
            b.value("document.querySelector('details').open = true")
            b.picture("2-answer.png")
            b.reload()
            b.until("document.querySelectorAll('article').length === 2")
            self.assertEqual(b.value(ANSWER), text)
            b.type("And 7 plus 8?")
            b.press_enter()
            b.until(IDLE + " === 4")
            b.picture("3-again.png")
            b.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
            b.picture("3-dark.png")
            b.value("$('clear').click()")
            self.assertEqual(b.value("document.querySelectorAll('article').length"), 0)
            outside = [u for u in b.requests if not u.startswith((self.url(self.server), "data:"))]
            self.assertEqual((outside, b.faults), ([], []))

    def test_stop(self):
        if not browser.find():
            self.skipTest("no Chromium")
        with harness.Server("--cpu", "ref") as s, browser.Browser(self.url(s), 420, 700) as b:
            b.until("document.readyState === 'complete' && $('model').textContent.includes('context')")
            b.type("Tell a long story. <img src=x onerror=alert(1)>")
            b.press_enter()
            b.until("$('send').textContent === 'Stop' && document.querySelector('article.assistant').innerText.length > 5", 60)
            b.picture("4-running.png")
            b.reload()  # in the middle: what was there is kept, and the server stops
            b.until("document.querySelectorAll('article').length === 2")
            self.assertGreater(len(b.value("document.querySelector('article.assistant').textContent")), 5)
            self.assertEqual(b.value(NOTE), "stopped")
            self.assertTrue(s.until(lambda: s.metric("ingot_requests_running") == 0))
            b.value("$('text').focus()")
            b.type("And another one.")
            b.press_enter()
            b.until("$('send').textContent === 'Stop' && [...document.querySelectorAll('article.assistant')].at(-1).innerText.length > 5", 60)
            b.value("$('send').click()")
            b.until(IDLE)
            self.assertEqual(b.value(NOTE), "stopped")
            self.assertEqual(b.value("document.images.length"), 0)
            self.assertTrue(s.until(lambda: s.metric("ingot_requests_running") == 0))
            b.picture("5-stopped.png")

    def test_a_key_is_asked_for(self):
        if not browser.find():
            self.skipTest("no Chromium")
        with harness.Server("--api-key", "sk-page") as s, browser.Browser(self.url(s)) as b:
            b.until("document.readyState === 'complete' && !$('key').hidden")
            self.assertEqual(b.value("document.activeElement.id"), "key")
            self.assertIn("API key", b.value("$('model').textContent"))
            b.picture("6-key.png")
            b.value("$('key').value = 'sk-page'; $('key').dispatchEvent(new Event('change'))")
            b.until("$('model').textContent.includes('context')")
            b.value("$('text').value = 'Say hi'; $('form').requestSubmit()")
            b.until(IDLE)
            self.assertNotIn("API key", b.value(NOTE))


if __name__ == "__main__":
    harness.main()
