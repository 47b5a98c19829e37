"""What people type, as they typed it, block by block with answers that fit every wording of the block (typed/*.txt).

A block is a line of answers after "=" and a line of wordings, both parted by "|"; blocks are parted by an empty line. Nothing in a wording is a pattern.
smalltalk_a is about the model and the conversation itself, smalltalk_b about the life of who writes, smalltalk_c and
smalltalk_d about both, help and help2 about Parley, beyond and beyond2 about what cannot be
known or done and about images, videos and files that were not sent, tasks small ones with their results: lists, how-tos, letters, explanations, code, phrases, words.
"""
import os
import re

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "typed")


def blocks(name):
    """[(wordings, answers)] of one file. An answer's \\n is a line's end."""
    out = []
    for block in open(os.path.join(HERE, name + ".txt"), encoding="utf-8").read().strip().split("\n\n"):
        head, line = block.split("\n")
        out.append(([w.strip() for w in line.split("|")], [a.strip().replace("\\n", "\n") for a in head.removeprefix("=").split("|")]))
    return out


class Talk:
    def __init__(s, *names):
        s.blocks = [b for n in names for b in blocks(n)]
        s.weights = [len(w) ** 0.75 for w, _ in s.blocks]  # large blocks are of what is asked most, small ones need to be seen, too

    def __call__(s, r):
        """A wording, now and then begun with a small or large letter or without its last sign, and an answer."""
        wordings, answers = r.choices(s.blocks, s.weights)[0]
        q, x = r.choice(wordings), r.random()
        if x < 0.12:
            q = q[:1].upper() + q[1:]
        elif x < 0.2:
            q = q.lower()
        elif x < 0.27:
            q = q.rstrip("?.!") or q
        return q, r.choice(answers)


FIRST = re.compile(r"before this|is the first one|start of our chat|nothing of yours|not told me|know your name")


def begins(answer):
    """Whether an answer fits the first message of a chat alone, as it says that nothing was said before."""
    return bool(FIRST.search(answer))


SMALLTALK = Talk("smalltalk_a", "smalltalk_b", "smalltalk_c", "smalltalk_d")
BEYOND = Talk("beyond", "beyond2")
HELP = Talk("help", "help2")
TASKS = Talk("tasks")

STOP = set("a an the is are was do does did how what why which who when where me my i you your to of in on for and or it its please can could would tell explain about so than then that this be make work s t there have has".split())


def meaning(question):
    """The words of a question that say what it is about, without the ends of plurals."""
    return frozenset(re.sub("s$", "", w) for w in re.findall("[a-z']+", question.lower()) if w not in STOP)


ANSWERED = {meaning(w) for wordings, _ in TASKS.blocks for w in wordings} - {frozenset()}


def texts():
    """All wordings and answers, for the vocabulary."""
    return [t for talk in (SMALLTALK, BEYOND, HELP, TASKS) for w, a in talk.blocks for t in w + a]
