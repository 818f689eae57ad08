TABLE = r"""
_Play.__init__
    len(stops) // 2 if -> 0 if  # begins at the low end
    self.start[name] = value -> pass  # start ignored
_Play.function
    return own.get( -> return self._given or (  # the function as it was
_Play.frame
    with redirect_stdout(printed): -> if True:  # what is printed is lost
    escape(text) -> text  # text as HTML
_Play.frames_html
    > MOST_FRAMES -> > 10**9  # any number of frames
    > MOST_BYTES -> > 10**9  # pages of any weight
    "".join([*styles, widget]) -> "".join(styles) + widget  # styles as text
    shown=values.index(self.start) -> shown=0  # another frame first
_Play._repr_mimebundle_
    "google.colab" not in sys.modules -> True  # Colab may take the dead form
_Play.widget
    control.observe(draw, "value") -> pass  # dead controls
    except Exception: -> except TypeError:  # a reader's error is lost
_on_or_off
    given[0] is False and ->  # 0 and 1 as a checkbox
play
    start or {} -> {}  # start ignored
"""
