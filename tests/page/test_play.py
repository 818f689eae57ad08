"""annotated/page/play.py: one call, frames for the page and widgets for a kernel."""

import json
import sys

import ipywidgets
import pytest
from bs4 import BeautifulSoup
from IPython.core.formatters import DisplayFormatter
from matplotlib import pyplot

from annotated.page.frames import Html
from annotated.page.pictures import Matrix, chain
from annotated.page.play import VIEW, play


def say(**values):
    return " ".join(f"{name}={value}" for name, value in values.items())


def soup(played):
    return BeautifulSoup(played.frames_html(), "html.parser")


def texts(played):
    return [frame.text for frame in soup(played).select(".annotated-frame")]


def seen(played):
    frames = soup(played).select(".annotated-frame")
    return [frame.text for frame in frames if not frame.has_attr("hidden")]


def test_the_page_has_a_frame_for_each_combination_in_order():
    played = play(say, label="Two", a=[1, 2], b=["x", "y", "z"])
    wanted = [f"a={a} b={b}" for a in (1, 2) for b in "xyz"]
    assert texts(played) == wanted and seen(played) == ["a=1 b=x"]
    controls = soup(played).select("[data-name]")
    assert [control.name for control in controls] == ["input", "select"]
    assert json.loads(controls[0]["data-values"]) == [1, 2]
    assert [option.text for option in controls[1].select("option")] == ["x", "y", "z"]


def test_false_and_true_are_a_checkbox_and_0_and_1_a_slider():
    for given, kind in ([False, True], "checkbox"), ([0, 1], "range"):
        played = play(say, label="L", start={"a": given[1]}, a=given)
        (control,) = soup(played).select("[data-name]")
        assert control["type"] == kind
        assert texts(played) == [f"a={a}" for a in given]
        assert seen(played) == [f"a={given[1]}"]
    assert control.has_attr("checked") is False


def test_styles_of_frames_come_once_and_as_they_are():
    html = play(lambda n: chain(Matrix([[n]])), label="L", n=[1, 2]).frames_html()
    assert "&lt;style" not in html and html.count(".annotated-cell.lit {") == 1


def test_a_range_has_thirteen_stops_alone_and_seven_beside_another():
    assert texts(play(say, label="L", n=(1, 5))) == [f"n={n}" for n in range(1, 6)]
    alone = texts(play(say, label="L", t=(0.0, 3.0)))
    assert alone == [f"t={0.25 * i}" for i in range(13)]
    both = texts(play(say, label="L", t=(0.0, 3.0), n=(1, 100)))
    assert len(both) == 49 and both[0] == "t=0.0 n=1" and both[-1] == "t=3.0 n=100"


def test_it_begins_in_the_middle_of_a_range_or_where_it_is_told():
    assert seen(play(say, label="L", t=(0, 10), k=[4, 8])) == ["t=5 k=4"]
    begun = play(say, label="L", start={"t": 10, "k": 8}, t=(0, 10), k=[4, 8])
    assert seen(begun) == ["t=10 k=8"]
    (chosen,) = soup(play(say, label="L", start={"m": "b"}, m=["a", "b"])).select(
        "option[selected]"
    )
    assert chosen.text == "b"
    for start in ({"k": 5}, {"other": 1}):
        with pytest.raises(ValueError, match=r"must be one of .*, got"):
            play(say, label="L", start=start, k=[4, 8])


def bar(height):
    figure, ax = pyplot.subplots(figsize=(1, 1))
    ax.bar([0], [height])
    return figure


def printing(n):
    print(f"<n> is {n}")


def test_what_a_function_gives_becomes_html():
    pyplot.close("all")
    drawn = play(bar, label="L", alt=lambda height: f"A bar of {height}", height=[1, 2])
    plots = soup(drawn).select(".annotated-frame .annotated-plot")
    alts = [plot["aria-label"] for plot in plots]
    assert alts == ["A bar of 1", "A bar of 2"] and not pyplot.get_fignums()
    assert "--at-" not in soup(drawn).get_text()  # styles come as styles
    with pytest.raises(ValueError, match="alt must say"):
        play(bar, label="L", height=[1, 2]).frames_html()
    assert texts(play(printing, label="L", n=[1, 2])) == ["<n> is 1\n", "<n> is 2\n"]
    bold = play(lambda n: Html(f"<b>{n}</b>"), label="L", n=[1, 2])
    assert [b.text for b in soup(bold).select(".annotated-frame b")] == ["1", "2"]


def test_the_page_stays_light():
    with pytest.raises(ValueError, match=r"at most 60 combinations, got 61"):
        play(say, label="L", n=list(range(61))).frames_html()
    with pytest.raises(ValueError, match=r"at most 400,000 bytes in all, got 6\d\d,"):
        play(lambda n: "x" * 200_000, label="L", n=[1, 2, 3]).frames_html()
    with pytest.raises(ValueError, match=r"low < high, got \(2, 1\)"):
        play(say, label="L", n=(2, 1))


def parts(played):
    view = played.widget()
    *controls, shown = view.children
    return {c.description: c for c in controls if c.description}, shown


def test_widgets_call_the_function_again():
    controls, shown = parts(
        play(say, label="L", t=(0.0, 2.0), n_heads=(1, 9), k=[4, 64], m=["a", "b"])
    )
    kinds = {name: type(control).__name__ for name, control in controls.items()}
    assert kinds == {
        "t": "FloatSlider",
        "n heads": "IntSlider",
        "k": "SelectionSlider",
        "m": "Dropdown",
    }
    controls["t"].value, controls["k"].value = 0.5, 64
    assert shown.value == "<pre>t=0.5 n_heads=5 k=64 m=a</pre>"


def test_a_function_that_is_written_anew_is_called_from_then_on(monkeypatch):
    controls, shown = parts(play(printing, label="L", n=(1, 3)))
    assert "&lt;n&gt; is 2" in shown.value
    monkeypatch.setitem(globals(), "printing", lambda n: f"anew {n}")
    controls["n"].value = 3
    assert shown.value == "<pre>anew 3</pre>"


def test_an_error_of_the_readers_is_shown_where_the_figure_was():
    controls, shown = parts(play(lambda n: 1 / (n - 3), label="L", n=(1, 4)))
    controls["n"].value = 3
    assert "ZeroDivisionError" in shown.value
    controls["n"].value = 4
    assert shown.value == "<pre>1.0</pre>"


def test_one_output_has_both_forms_and_colab_the_live_one(monkeypatch):
    played = play(say, label="L", n=[1, 2])

    def shown():
        return DisplayFormatter().format(played)[0]

    forms = shown()
    assert set(forms) == {"text/plain", "text/html", VIEW}
    assert forms[VIEW]["model_id"] and "annotated-frames" in forms["text/html"]
    monkeypatch.setitem(sys.modules, "google.colab", ipywidgets)
    assert set(shown()) == {"text/plain", VIEW}
    monkeypatch.delitem(sys.modules, "google.colab")
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert set(shown()) == {"text/plain", "text/html"}
