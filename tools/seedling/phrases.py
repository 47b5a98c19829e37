"""How people ask about pictures and videos: many wordings for every skill, and careless typing.

A wording is a format string. {pic} is "picture", "image", ...; the other names are filled in by the skill.
"""

import re

PICTURE_NAMES = ["picture"] * 4 + ["image"] * 3 + ["drawing", "pic", "pic"]
VIDEO_NAMES = ["film"] * 3 + ["video"] * 4 + ["clip", "animation", "movie"]

SCENE = {
    "describe": """Describe the {pic}.|Describe this {pic} in detail.|Describe this {pic}.|What does the {pic} show? Be exact.
Give me a detailed description of the {pic}.|Describe everything you see.|Describe the {pic} exactly.|Please describe the {pic}.
Can you describe the {pic}?|Tell me everything about this {pic}.|Explain the {pic} in detail.|Write a description of the {pic}.
Describe what is in the {pic}.|Could you describe this {pic} for me?|Describe it in detail.|Give a full description.|Describe this.
Describe the {pic} as exactly as you can.|I cannot see the {pic}. Describe it to me.|Describe all the objects.""",
    "see": """What is in the {pic}?|What do you see?|What can you see in this {pic}?|What is on the {pic}?|What is this?
Describe it briefly.|What objects are there?|What's in this {pic}?|What does this {pic} show?|What is shown here?
Which objects are in the {pic}?|List the objects.|List the shapes in the {pic}.|What shapes do you see?|Which shapes are there?
Tell me what you see.|What am I looking at?|Name the objects in the {pic}.|What's this?|What do you see in the {pic}?
What is drawn here?|Can you tell me what is in the {pic}?|What things are in the {pic}?|Look at the {pic}. What is there?
What have I drawn?|What's on the {pic}?|What is it?|What shapes are in the {pic}?|Which things can you see?|What do we have here?""",
    "color": """What color is the {x}?|What colour is the {x}?|Which color does the {x} have?|Tell me the color of the {x}.
What is the color of the {x}?|Which colour is the {x}?|What's the color of the {x}?|In what color is the {x} drawn?
Do you know the color of the {x}?|Name the color of the {x}.|What color does the {x} have?|Can you tell me what color the {x} is?
I want to know the color of the {x}.|Color of the {x}?|What color is the {x} in the {pic}?|The {x} is what color?
There is {ax}. What color is it?|Which color has the {x}?|How is the {x} colored?|Is the {x} {c1} or {c2}?|Which color is the {x}?
Is the {x} {c1}, {c3} or {c2}?|What colour does the {x} have?|Look at the {x}. What is its color?""",
    "shape": """What shape is the {c} one?|What is the shape of the {c} object?|Which shape is {c}?|What is the {c} thing?
What is {c} in the {pic}?|Which object is {c}?|What kind of shape is the {c} one?|What form does the {c} object have?
The {c} object is what shape?|Tell me the shape of the {c} one.|What's the {c} object?|What shape does the {c} object have?
Name the {c} shape.|What shape is {c}?|What is the {c} object?|Which shape has the color {c}?|What is the {c} shape called?
Which thing is {c}?|What shape is the {c} thing?|Is the {c} object a {s1} or a {s2}?""",
    "count": """How many objects are there?|How many shapes are in the {pic}?|How many things do you see?|Count the objects in the {pic}.
Count the shapes.|How many objects can you see?|How many shapes are there in total?|What is the number of objects?
How many items are in the {pic}?|How many are there?|How many figures does the {pic} show?|Number of shapes?
Please count the objects.|Can you count the shapes for me?|How many shapes do you see?|How many things are in this {pic}?
Tell me how many objects there are.|What's the total number of shapes?|How many objects does the {pic} contain?|How many shapes are there?
How many different objects are visible?|How many objects did I draw?|Count everything in the {pic}.""",
    "count_shape": """How many {xs} are there?|How many {xs} do you see?|Count the {xs}.|How many {xs} are in the {pic}?
What is the number of {xs}?|Number of {xs}?|How many {xs} can you find?|How many of the shapes are {xs}?|Tell me how many {xs} there are.
How many of them are {xs}?|How many {xs} does the {pic} show?|Count all {xs} in the {pic}.|How many {xs} can you see?
How many of the objects are {xs}?|How many {xs} did I draw?|Please count the {xs}.""",
    "count_color": """How many {c} objects are there?|How many objects are {c}?|Count the {c} shapes.|How many {c} shapes do you see?
How many {c} things are in the {pic}?|How many shapes are {c}?|How many of the objects are {c}?|Number of {c} objects?
How many things are {c}?|Count the {c} objects.|How many {c} ones are there?|What is the number of {c} shapes?
Tell me how many {c} objects there are.|How many {c} shapes are in the {pic}?|How many of them are {c}?|How many {c} shapes are there?
How many of the shapes are {c}?|How many objects have the color {c}?|How many {c} objects can you see?|How many {c} objects does the {pic} show?""",
    "count_name": """How many {names} are there?|How many {names} do you see?|Count the {names}.|How many {names} are in the {pic}?
Number of {names}?|How many of the shapes are {names}?|How many {names} can you find?|Tell me how many {names} there are.""",
    "relation": """Where is the {a} relative to the {b}?|Where is the {a}, seen from the {b}?|On which side of the {b} is the {a}?
Where is the {a} compared to the {b}?|What is the position of the {a} relative to the {b}?|How is the {a} placed relative to the {b}?
Is the {a} left, right, above or below the {b}?|In relation to the {b}, where is the {a}?|Where does the {a} lie with respect to the {b}?
Looking from the {b}, where is the {a}?|Tell me where the {a} is, seen from the {b}.|Which side of the {b} is the {a} on?
Where is the {a} in relation to the {b}?|Is the {a} {both} the {b}?|Is the {a} {both} the {b}?|Is the {a} {both} the {b}?
Where is the {a} with respect to the {b}?|Where would I find the {a}, starting at the {b}?|Relative to the {b}, where is the {a}?
In which direction from the {b} is the {a}?""",
    "relation_yes": """Is the {a} {rel} the {b}?|Is the {a} {rel} the {b}?|Is the {a} {rel} the {b}?|Does the {a} lie {rel} the {b}?
Is it true that the {a} is {rel} the {b}?|The {a} is {rel} the {b}, right?|Would you say that the {a} is {rel} the {b}?
Is the {a} placed {rel} the {b}?|Can I say that the {a} is {rel} the {b}?|Yes or no: is the {a} {rel} the {b}?""",
    "relation_what": """What is {rel} the {b}?|Which object is {rel} the {b}?|What do you see {rel} the {b}?|Which shape is {rel} the {b}?
What can be found {rel} the {b}?|What lies {rel} the {b}?""",
    "where": """Where is the {x}?|Where in the {pic} is the {x}?|At which place is the {x}?|In which part of the {pic} is the {x}?
Where can I find the {x}?|What is the position of the {x}?|Where do you see the {x}?|Which corner or side is the {x} in?
Where is the {x} located?|Tell me where the {x} is.|In which area is the {x}?|Where's the {x}?|Position of the {x}?|Find the {x}.
Where did I put the {x}?|Can you tell me where the {x} is?|Where is the {x} in the {pic}?|Which part of the {pic} holds the {x}?
Locate the {x}.|At what place in the {pic} is the {x}?""",
    "big": """Which is the {w} object?|What is the {w} shape?|Which object is the {w}?|What is the {w} thing in the {pic}?
Which shape is the {w} one?|Which one is the {w}?|Name the {w} object.|Which of the objects is the {w}?|Tell me the {w} shape.
Find the {w} object.|What's the {w} thing here?|Which shape is the {w}?|Which thing is the {w}?|What is the {w} object?""",
    "exists": """Is there {ax} in the {pic}?|Is there {ax}?|Do you see {ax}?|Can you find {ax}?|Does the {pic} contain {ax}?
Can you see {ax}?|Does the {pic} show {ax}?|Are there any {xs}?|Any {xs} here?|Is there any {x}?|Do you see any {xs}?
Is {ax} visible?|Did I draw {ax}?|Is there {ax} here?|Is {ax} in the {pic}?|Does the {pic} have {ax}?|Is there {ax} somewhere?
Are there {xs} in the {pic}?|Can {ax} be seen?|Yes or no: is there {ax}?""",
    "background": """What color is the background?|What is the background color?|Which colour does the background have?
Describe the background.|What's the background like?|What color is behind the objects?|Tell me the background color.
Which color is the background?|Background color?|What colour is the background?|What is the color of the background?
What color does the background have?|How is the background colored?|On what color is it drawn?|And the background?
What's the background color?|Can you tell me the color of the background?|What is behind the shapes?|Which color is behind everything?""",
    "arrow": """Which way does the arrow point?|Where does the arrow point?|In which direction does the arrow point?
What is the direction of the arrow?|Where is the arrow pointing?|Which direction is the arrow pointing?|Which way is the arrow going?
Does the arrow point left, right, up or down?|What direction does the arrow show?|The arrow points where?|Arrow direction?
To which side does the arrow point?|Tell me the direction of the arrow.|Where is the arrow heading?|Which way is the arrow pointing?
Is the arrow pointing {d1} or {d2}?|Does the arrow point {d1} or {d2}?|What direction is the arrow pointing?|In what direction is the arrow?""",
    "outline": """Is the {x} filled or outlined?|Is the {x} outlined or filled?|Is the {x} solid or just an outline?|Is the {x} filled?
Is the {x} only outlined?|How is the {x} drawn, filled or outlined?|Is the inside of the {x} filled?|Is the {x} filled in?""",
    "size": """How big is the {x}?|What size is the {x}?|Is the {x} small, medium or large?|What is the size of the {x}?
How large is the {x}?|Tell me the size of the {x}.|Would you call the {x} small, medium or large?|What size does the {x} have?""",
    "side": """Which object is the {s}?|What is the {s} object?|Which object is {far}?|What is {far}?|Which shape is the {s} one?
What's {far}?|Name the object {far}.|Which shape is {far}?|Which is the {s} shape?|What do you see {far}?""",
}

PRINT = {
    "read_number": """What number is shown?|Read the number.|Which number is in the {pic}?|What is the number?|What number do you see?
What number is this?|Which number is written here?|Read the digits.|Tell me the number.|Can you read the number?|What digits are shown?
What number is in the {pic}?|Please read the number in the {pic}.|What is written here?|What does it say?|Read it.|What is this number?
Which number do you see?|What's the number?|Type the number you see.|What number can you read?|What number is written in the {pic}?""",
    "read_text": """What does the text say?|Read the text.|What is written here?|What does it say?|What is the text?|Can you read this?
Read this for me.|What does the {pic} say?|What text is in the {pic}?|What text do you see?|Please read the text in the {pic}.
Tell me what is written.|What is written in the {pic}?|Transcribe the text.|What does the sign say?|Read it to me.|What's written there?
What can you read?|Read it.|What is written on the {pic}?|What does it read?|What text is shown?|Read what is written here.
Read the {word}.|Which {word} {is} in the {pic}?|What {word} do you see?|What {word} {is} shown?|What {word} {is} written here?
Which {word} can you read?|What {word} {is} this?|Tell me the {word} in the {pic}.""",
    "text_color": """What color is the text?|In which color is it written?|What color are the letters?|Which color does the text have?
What is the color of the text?|In what color is the text written?|What colour is the writing?|Text color?""",
    "text_words": """How many words are there?|How many words do you see?|Count the words.|How many words are in the {pic}?|How many words does the text have?""",
    "text_first": "What is the first letter?|Which letter comes first?|What letter does it start with?|With which letter does the text begin?",
    "describe_text": "Describe the {pic}.|What is in the {pic}?|What do you see?|What is this?|Describe this {pic}.|What does the {pic} show?|Tell me what you see.",
    "chart_tallest": """Which bar is the tallest?|Which bar is the highest?|What has the largest value?|Which is the biggest bar?
Which bar is the longest?|What is the tallest bar?|Which one is the highest?|Who has the most?|Which bar has the highest value?
What has the highest value?|Which label has the largest value?|Which is the maximum?|Which category is the largest?|What bar is the biggest?
Which bar has the largest value?|Find the tallest bar.|Which is the tallest?|What is the highest bar in the chart?""",
    "chart_lowest": """Which bar is the shortest?|Which bar is the lowest?|What has the smallest value?|Which is the smallest bar?
What is the shortest bar?|Which one is the lowest?|Which bar has the lowest value?|What has the lowest value?
Which label has the smallest value?|Which is the minimum?|Which category is the smallest?|Which bar has the smallest value?
Find the shortest bar.|Which is the shortest?|What is the lowest bar in the chart?|What has the least?""",
    "chart_count": """How many bars are there?|How many bars do you see?|Count the bars.|How many bars are in the chart?|Number of bars?
How many bars does the chart have?|How many columns are in the chart?|How many bars are shown?""",
    "chart_value": """What is the value of {l}?|How much is {l}?|Which value does {l} have?|What value does {l} have?|How high is {l}?
What is the number for {l}?|Read the value of {l}.|What number is above {l}?|What is {l}'s value?|How many for {l}?|Value of {l}?
What is the value of the bar {l}?|Tell me the value of {l}.|How high is the bar {l}?|What does the chart say for {l}?|How many does {l} have?
What is the height of {l}?|Which number belongs to {l}?|What's the value for {l}?""",
    "chart_color": "What color is the bar {l}?|Which color does the bar {l} have?|What is the color of {l}?|What color is {l}?|What colour is the bar for {l}?",
    "chart_compare": "Is {l} higher than {k}?|Is {l} larger than {k}?|Is the bar {l} taller than the bar {k}?|Is {l} more than {k}?|Does {l} have a higher value than {k}?",
    "chart_label": "What labels are there?|List the labels.|Which labels does the chart have?|What are the bars called?|Name the bars.",
    "describe_chart": """Describe the {pic}.|What is in the {pic}?|What does the chart show?|Describe the chart.|Explain the chart.
What do you see?|Summarize the chart.|What are the values?|Read the chart.|List all values.|Give me the data of the chart.|What is this?""",
}

TWO = {
    "two_more": """Which picture has more objects?|In which picture are more objects?|Which image has more shapes?|Which of the two has more objects?
Where are more objects, in the first or the second?|Does the first or the second picture have more objects?|Which one contains more shapes?
Which picture shows more things?|Are there more shapes in the first or in the second picture?|In which image do you see more objects?
Compare the number of objects.|Which {pic} has the most shapes?|Which of the pictures contains more objects?|Which one has more?""",
    "two_same": """Are the pictures the same?|Are the two pictures equal?|Is it the same picture twice?|Are these two images identical?
Are both pictures the same?|Do the pictures match?|Are they identical?|Is there any difference?|Are these the same?|Are the two images equal?
Do the two pictures show the same?|Is the second picture the same as the first?""",
    "two_differ": """What differs?|What is the difference?|What is different in the second picture?|Find the difference.|Spot the difference.
What changed?|What changed in the second picture?|How do the pictures differ?|What is the difference between the two pictures?
What's different?|How does the second picture differ from the first?|Which change do you see?|Tell me the difference.|Compare the two pictures.
What has changed between the images?|In what way are they different?""",
    "two_each": """What is in the {nth} picture?|What do you see in the {nth} picture?|What does the {nth} picture show?|What is on the {nth} image?
List the objects in the {nth} picture.|Which objects are in the {nth} image?|Look at the {nth} picture. What is there?|{Nth} picture: what is in it?
What's in the {nth} one?|Which shapes are in the {nth} picture?|Tell me what is in the {nth} image.""",
    "two_count": """How many objects are in the {nth} picture?|Count the shapes in the {nth} picture.|How many shapes does the {nth} image have?
How many things are in the {nth} picture?|How many objects do you see in the {nth} one?""",
    "two_total": "How many objects are there in both pictures together?|How many shapes are there in total?|Count all objects in both pictures.|How many objects do the two pictures have together?",
    "two_color": "What color is the {x} in the {nth} picture?|Which color does the {x} in the {nth} picture have?|In the {nth} image, what color is the {x}?|What colour is the {x} in the {nth} one?",
    "two_which": "Which picture contains {ax}?|In which picture is {ax}?|Where do you see {ax}, in the first or the second picture?|Which image shows {ax}?|Which of the two has {ax}?",
}

VIDEO = {
    "video_describe": """Describe the {video}.|What happens in the {video}?|What happens?|What do you see in the {video}?|What is going on?
What is happening?|Describe what happens.|What does the {video} show?|Tell me what happens in the {video}.|Describe this {video}.
What happens here?|What can you see in the {video}?|Explain the {video}.|What's going on in this {video}?|Summarize the {video}.
What is in the {video}?|What is happening in this {video}?|What's happening?""",
    "video_move": """Which way does the {x} move?|In which direction does the {x} move?|Where does the {n} go?|Which way does it move?
What direction does the {x} move in?|Where does the {x} move?|Where is the {x} going?|In what direction is the {x} moving?
Does it move left, right, up or down?|Which direction does the {n} move?|Which way is the {x} moving?|Direction of the movement?
How does the {x} move?|Where does it move to?|To which side does the {x} move?|Which way does the {n} go?""",
    "video_what": "What moves?|Which object moves?|What is moving?|Which shape is moving?|What thing moves in the {video}?",
    "video_color": "What color is the {x}?|What colour is the {x}?|Which color does the {x} have?|What is the color of the {x}?|Tell me the color of the {x}.",
    "video_recolor": """How does the {x} change?|Which color change do you see?|From which color to which does the {x} change?|What changes?
How does the color change?|What color does the {x} become?|What happens to the color of the {x}?|Which colors does the {x} have?
What is the color change of the {x}?|How does the {x} change its color?|What happens to the {x}?""",
    "video_when_color": """When does the {x} change its color?|At which second does the {x} change color?|When does the color change?
At what time does the color change?|After how many seconds does the {x} change color?|When does it change?|At which second does the color change?""",
    "video_when": """When does the {x} {verb}?|At which second does the {n} {verb}?|At what time does the {x} {verb}?|When does it {verb}?
After how many seconds does the {x} {verb}?|At which second does it {verb}?""",
    "video_appear": """What appears or disappears?|Does the {x} appear or disappear?|Which object appears or disappears?
What happens to the {x}?|Does something appear or disappear?|Does the {n} come or go?|Does the {x} show up or vanish?""",
    "video_flash": """How many flashes are there?|How often does it flash?|Count the flashes.|How many times does it flash?|How many flashes do you see?
How many times do you see a flash?|How often is there a flash?|How many times does it light up?|How many flashes does the {video} have?|Flashes?|How often does it blink?
Number of flashes?|How often does the {video} flash?|How many times does the {video} flash?|Tell me how many flashes there are.""",
    "video_end_color": """What color is the {x} {e}?|What colour is the {x} {e}?|Which color does the {x} have {e}?|{e} the {x} is what color?
What is the color of the {x} {e}?|What color does the {x} have {e}?|Which colour is the {x} {e}?|{e}, what color is the {x}?|Color of the {x} {e}?
Tell me the color of the {x} {e}.|In what color is the {x} {e}?|How is the {x} colored {e}?|What color was the {x} {e}?""",
    "video_end_place": """Where is the {x} {e}?|Where do you see the {x} {e}?|On which side is the {x} {e}?|{e}, where is the {x}?|Where was the {x} {e}?
What is the position of the {x} {e}?|In which part is the {x} {e}?|Where is it {e}?""",
    "video_end_object": """What do you see {e}?|What is there {e}?|What is shown {e}?|{e}, what do you see?|Which object is there {e}?|What can be seen {e}?
Which shape is there {e}?|What is visible {e}?|What does the {video} show {e}?|Is there anything {e}?""",
    "video_end_size": "How big is the {x} {e}?|What size is the {x} {e}?|{e}, is the {x} small or large?|Is the {x} small or large {e}?|How large is it {e}?",
    "video_when_turn": """When does it turn {c}?|When does the {x} turn {c}?|At what time does the {x} become {c}?|When does it become {c}?|When is the {x} {c}?
At which second does it turn {c}?|At which time does the {x} get {c}?|From when on is the {x} {c}?|When do you see {c} first?|How long until it turns {c}?""",
    "video_blink": """How often does the {x} blink?|How many times does the {x} blink?|How many times does it vanish?|Count how often the {x} blinks.
How often is the {x} gone?|How many times does the {n} disappear?|How often does it blink?|Number of blinks?""",
    "video_after": "What comes after the {x}?|What is shown after the {x}?|Which object follows the {x}?|What follows the {x}?|What do you see after the {x}?|After the {x}, what comes?",
    "video_turns": """In which order are the shapes shown?|What is the order of the shapes?|List the shapes in order.|In what order do they come?|Which shapes are shown, in order?
Name the shapes in the order they appear.|What comes first, and what comes then?|Tell me the order.|Which order do the objects have?""",
    "video_order": """Which shape is shown {w}?|What do you see {w}?|What comes {w}?|Which object is shown {w}?|What is shown {w}?
Which shape comes {w}?|What appears {w}?|Which object do you see {w}?""",
    "video_first_number": """Which number is shown first?|What is the first number?|What number does it start with?|With which number does the {video} start?
Which number comes first?|What number do you see first?|Where does the count start?""",
    "video_last_number": """Which number is shown last?|What is the last number?|What number does it end with?|With which number does the {video} end?
Which number comes last?|What number do you see last?|Where does the count end?|What number is shown at the end?""",
    "video_updown": "Does the number go up or down?|Is the video counting up or down?|Does it count up or down?|Is the number getting larger or smaller?|Do the numbers rise or fall?",
    "video_grow": """Does the {x} grow or shrink?|How does the size of the {x} change?|Does the {x} get bigger or smaller?|What happens to the size of the {x}?
Is the {x} growing or shrinking?|Does the {n} become larger or smaller?|What happens to the {x}?|How does the {x} change?""",
    "video_still": "What moves?|What changes?|Does anything move?|Does anything change?|Is there any change?",
}

ALL = {k: [w for line in v.split("\n") for w in line.split("|")] for table in (SCENE, PRINT, TWO, VIDEO) for k, v in table.items()}


def ask(r, skill, **names):
    """One wording of a question of this skill, filled with the given names."""
    pic, video = r.choice(PICTURE_NAMES), r.choice(VIDEO_NAMES)
    text = r.choice(ALL[skill]).format(pic=pic, video=video, **names)
    return text[:1].upper() + text[1:]


GREETINGS = [
    "Hey, ",
    "Hi! ",
    "Hello, ",
    "So, ",
    "Ok, ",
    "ok ",
    "hey ",
    "hi ",
    "Please tell me: ",
    "Quick question: ",
    "Tell me, ",
    "Question: ",
    "now ",
    "and ",
]
THANKS = [" Thanks!", " Please.", " thanks", " please", " pls", " plz", ", please?", " thx", " Thank you."]
SHORT_FORMS = [
    ("What is ", "Whats "),
    ("What is ", "what's "),
    ("What's ", "whats "),
    ("picture", "pic"),
    ("Do you see", "do u see"),
    ("Can you", "can u"),
    ("There is", "there's"),
    ("Where is", "wheres"),
    ("Tell me", "tell me pls"),
    ("Describe", "pls describe"),
    ("Which", "wich"),
    ("What", "waht"),
    ("many", "mny"),
]


def casual(r, text, keep_case=False, shout=False):
    """The question as people type it: sometimes in lower case, without punctuation, with please or thanks."""
    x = r.random()
    if r.random() < 0.06:
        old, new = r.choice(SHORT_FORMS)
        text = text.replace(old, new, 1)
    if not keep_case:
        if x < 0.14:
            text = text[:1].lower() + text[1:]
        elif x < 0.28 and not any(c in "'\"{" for c in text):
            text = text.lower()
    y = r.random()
    if y < 0.18:
        text = text.rstrip("?.!")
        if r.random() < 0.25:
            text += r.choice([" pls", " please", " plz", " thanks", "??", " ?"])
    elif y < 0.24:
        text = r.choice(GREETINGS) + (text if keep_case or r.random() < 0.5 else text[:1].lower() + text[1:])
    elif y < 0.29:
        text += r.choice(THANKS)
    elif y < 0.31 and shout:
        text = text.upper()
    return text


def spread(r, text):
    """One of the many texts that a pattern stands for: {a|b|c} is one of its parts, also nested."""
    while "{" in text:
        text = re.sub(r"\{([^{}]*)\}", lambda m: r.choice(m[1].split("|")), text)
    return text
