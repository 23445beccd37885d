"""README.md's pictures and the website's social picture, from the real thing in a browser.

    python -m tests.animation      (writes assets/readme.gif, assets/check.png, assets/social.png)

The moving picture is the player's film of a race and its cure; the still is what a check says of an
answer without a guard; the social picture is the course's name and its recorded result.
"""

import base64
import io
import os
import tempfile
from pathlib import Path

os.environ["CUDA_COURSE_CPU"] = "1"  # before utils: films are drawn from the CPU engine's record

from PIL import Image
from pygments.formatters import HtmlFormatter

import utils  # noqa: F401  first: it decides between GPU and CPU
from course.chapters import TITLE
from course.pictures import front
from course.publish import landing
from tests.browser import ROOT, installed_chromium, playwright

SCREEN = {"width": 772, "height": 600}
SHARPER = 1.25  # pixels of the picture for one of the page: letters that a phone can show
#: A picture has no buttons: none are painted that nobody can press. Its lines of code stay whole
FILM = """
.bar, .counts { display: none !important }
.film { border-color: transparent; outline: none !important; padding-bottom: 2px }
.one { grid-template-columns: 374px minmax(0, 1fr) }
.code { min-height: 138px; font-size: 12.4px }
.code li { grid-template-columns: 36px 2ch minmax(0, 1fr) }
.said { min-height: 5.2em }
"""
PLAYER = ".kernel-film .film"
SCRUBBER = ".kernel-film input[type=range]"
WRONG = ".kernel-film .said.wrong"
STEP, HELD = 650, 4500  # milliseconds
LOGO = ROOT / "course" / "publish" / "web" / "static" / "favicon.svg"
SOCIAL = {"width": 1280, "height": 640}
CARD = """
body { display: grid; grid-template-columns: 1fr 640px; gap: 50px; align-items: center;
  height: 640px; box-sizing: border-box; margin: 0; padding: 0 50px; color: #1f2328;
  font: 23px/1.4 system-ui, 'DejaVu Sans', sans-serif; border-top: 14px solid #0072b2; }
h1 { font-size: 47px; line-height: 1.12; margin: 0 0 22px; }
p { margin: 0; }
img { width: 84px; margin-bottom: 22px; }
"""
COLOURS = 256


DRESSED = """css => {
  const root = document.querySelector(".kernel-film").shadowRoot;
  const style = document.createElement("style");
  style.textContent = css;
  root.append(style);
}"""


def films(folder):
    """The paths of two films: a race, and its cure."""
    for n, (title, traced) in enumerate(front.films().items()):
        player = traced.play()
        player.films[0].data["title"] = title
        yield player.share(folder / f"{n}.html")


def frames(page, film):
    """(picture, milliseconds) of a film, step by step, held where it goes wrong and at its end."""
    page.goto(film.as_uri())
    last = int(page.locator(SCRUBBER).get_attribute("max"))
    page.evaluate(DRESSED, FILM)
    page.locator(PLAYER).focus()
    for step in range(last + 1):
        page.keyboard.press("Home" if step == 0 else "ArrowRight")
        page.wait_for_timeout(100)  # until it is drawn
        png = page.locator(PLAYER).screenshot()
        shown = Image.open(io.BytesIO(png)).convert("RGB")
        is_wrong = page.locator(WRONG).count() > 0
        yield shown, HELD if is_wrong or step == last else STEP
        if is_wrong:
            break


def write_gif(pictures, path):
    """Write the pictures as an animation, all of one size and with one palette: what is blue in
    one frame is the same blue in the next.
    """
    shown = [picture for picture, _ in pictures]
    size = max(each.width for each in shown), max(each.height for each in shown)
    sheets = [Image.new("RGB", size, "white") for _ in shown]
    for sheet, picture in zip(sheets, shown, strict=True):
        sheet.paste(picture)
    palette = all_colours(sheets)
    flat = [sheet.quantize(palette=palette, dither=Image.Dither.NONE) for sheet in sheets]
    paper = flat[0].getpixel((0, 0))  # the mean of all that is nearly white
    for sheet in flat:
        colours = sheet.getpalette()
        colours[3 * paper : 3 * paper + 3] = 255, 255, 255
        sheet.putpalette(colours)
    times = [milliseconds for _, milliseconds in pictures]
    flat[0].save(
        path, save_all=True, append_images=flat[1:], duration=times, loop=0, optimize=False
    )


def all_colours(sheets):
    """A palette for all of these pictures at once."""
    width, height = sheets[0].size
    montage = Image.new("RGB", (width, height * len(sheets)))
    for number, sheet in enumerate(sheets):
        montage.paste(sheet, (0, height * number))
    return montage.quantize(COLOURS, kmeans=4, dither=Image.Dither.NONE)


def social(browser):
    """The course's name and its result, as other sites show a link to it."""
    page = browser.new_page(viewport=SOCIAL)
    picture = front.race_picture()._repr_html_()
    logo = base64.b64encode(LOGO.read_bytes()).decode()
    words = f'<img src="data:image/svg+xml;base64,{logo}"><h1>{TITLE}</h1><p>{landing.TAGLINE}</p>'
    page.set_content(f"<style>{CARD}</style><div>{words}</div><div>{picture}</div>")
    return page.screenshot()


REPORT = """
body { width: 760px; margin: 0; padding: 4px; color: #1f2328; background: #fff;
  font: 16px/1.45 system-ui, 'DejaVu Sans', sans-serif; }
pre { background: #f6f8fa; padding: 10px 14px; margin: 0 0 14px; border-radius: 6px;
  font: 14px/1.5 ui-monospace, 'DejaVu Sans Mono', monospace; }
"""


def check(browser):
    """What the course says to an answer that looks right: its code, and the check's report."""
    page = browser.new_page(viewport=SCREEN, device_scale_factor=SHARPER)
    colours = HtmlFormatter(style="a11y-high-contrast-light").get_style_defs()
    page.set_content(f"<style>{colours}{REPORT}</style><main>{landing.report()}</main>")
    return page.locator("main").screenshot()


def small(png):
    """The picture with a palette: a third of the bytes."""
    picture = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def main():
    with tempfile.TemporaryDirectory() as scratch, playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=installed_chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        page = browser.new_page(viewport=SCREEN, color_scheme="light", device_scale_factor=SHARPER)
        shown = [frame for film in films(Path(scratch)) for frame in frames(page, film)]
        write_gif(shown, ROOT / "assets" / "readme.gif")
        (ROOT / "assets" / "check.png").write_bytes(small(check(browser)))
        (ROOT / "assets" / "social.png").write_bytes(social(browser))
        browser.close()


if __name__ == "__main__":
    main()
