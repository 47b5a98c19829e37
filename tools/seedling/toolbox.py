"""Tools of many kinds with questions as people ask them. Names, keys and values are new each time, so that they must be read from the schema and the question.

A kind is: names; descriptions; parameters as key/other key:value kind; questions with <1>, <2> for the values.
"""
import re

import forms
import trades
from phrases import spread
from skills import pseudo, word
from words import *

KINDS = """
sky_report town_weather weather_now climate outlook|Weather of a place;The weather today;Tells sun and rain for a place|place/village/spot/where:place|What is the weather {like |}in <1>;Is it {sunny|wet|cold|windy|warm} in <1>{ today| tomorrow|};Weather for <1>;Do I need a coat in <1>;Will it {snow|be warm|be sunny|be dry} in <1>;How is it outside in <1>;<1> weather please;{sun|rain|snow} in <1>
share_price ticker price_of_stock market_price|Latest price of a company;Value of a stock on the market|ticker/company/stock/id:code|What is the price of <1>;How is <1> doing;What does <1> cost;Price of <1> please;{Show|Fetch|Tell|Give} me the price of <1>;I want the value of <1>;How much is <1>
plan_event schedule new_event make_meeting calendar_add create_date|Adds an entry to the calendar;Plan an event;Write down a date|name/event/what:thing;when/weekday/on:day|Plan <1> {for|on} <2>;Put <1> on <2>;I have <1> on <2>, note it;Schedule <1> for <2>;{Event|New event}: name <1>, when <2>;On <2> there is <1>, put it in;Enter <1> for <2> into my calendar;<1> is on <2>, please add it
write_mail email post_letter mail_to compose_mail|Writes an email;Send electronic mail to somebody|recipient/receiver/address/person:name;topic/about/headline:thing|Email <1> about <2>;Write to <1> about <2>;{Write|Send} <1> an email about <2>;Send an email to <1>, topic <2>;Mail <1> with the topic <2>;A letter to <1> about <2>;To <1>: a mail on <2>
text_friend message_person notify ping_user say_to|Sends a text message;Message somebody|contact/friend/user:name;words/body/content:quote|Tell <1> '<2>';Text <1>: <2>;Message <1> '<2>';Let <1> know: <2>;Send '<2>' to <1>;Write '<2>' to <1>
convert_unit unit_change convert change_units|Convert a measure into another unit;Changes units|value/number/quantity:int;from_unit/unit/from:unit;to_unit/into/to:unit|Convert <1> <2> to <3>;How many <3> are <1> <2>;Turn <1> <2> into <3>;<1> <2> in <3>;Change <1> <2> to <3>;What is <1> <2> in <3>
exchange money_change fx swap_money|Exchange money between currencies;Changes currencies|sum/money/value:int;base/from/have:currency;quote/to/want:currency|Change <1> <2> into <3>;How much is <1> <2> in <3>;<1> <2> to <3>;Exchange <1> <2> for <3>;I have <1> <2> and want <3>;What are <1> <2> in <3>;Swap <1> from <2> to <3>
make_note remember write_down memo jot store_text|Writes a note;Keeps a short text;Stores a memo|note/memo/content/line:quote|Note: <1>;Write down '<1>';Remember '<1>';Make a note: <1>;Memo: <1>;Jot down <1>;Please note that I must <1>;Note that: <1>;Keep '<1>' for me;Store the text '<1>'
light_level brightness set_light lamp_power|Sets how bright a lamp is;Change the brightness|light/lamp_name/which/room:room;level/brightness/value:int|Set the {light|lamp} <1> to <2>;Make <1> <2> percent bright;Brightness of <1> to <2>;Dim <1> to <2>;<1> lamp to <2> percent;Turn the <1> light to <2> percent;I want <2> percent light in <1>
search_papers find_pages get_docs query_library news_search look_for|Searches a collection;Find texts on a subject;Search pages|subject/query/keyword/about/q:topic|Find {something|texts|pages|papers|news} {about|on} <1>;Search for <1>;Look for {texts|pages} about <1>;I need {papers|texts} on <1>;What is there about <1>;Get me texts about <1>;Find <1>;{papers|pages|texts} with the subject <1>;Search the library for <1>
throw_dice random_roll dice roll_many|Throws dice;Rolls some dice|faces/size/kind:int;count/number/rolls:int|Roll <2> dice with <1> faces;Throw <2> dice, <1> faces each;Throw a die of <1> faces <2> times;{Roll|Throw} <1> faces, <2> rolls;Give me <2> throws of a <1>-faced die
start_music music play_track put_on listen|Plays music;Start a track|track/song/name:title;by/band/singer:title|Play <1> by <2>;Put on <1> by <2>;I want to hear <1> by <2>;Start <1> from <2>;Play the track <1> by the band <2>;Music: <1>, by <2>;{Play|Start} track <1>, singer <2>
way route how_far trip_length path_between drive_time|Length of a trip;How far places are apart;Route between places|from_place/origin/a/depart:place;to_place/destination/b/arrive:place|How {long|far} is {it|the way|the trip} from <1> to <2>;{Way|Route|Path} from <1> to <2>;From <1> to <2>, how far;How do I get from <1> to <2>;Show the way between <1> and <2>;How long from <1> to <2>;I go from <1> to <2>;Trip with origin <1> and destination <2>
define dictionary explain_word meaning wiki|Explains a word;Gives the meaning of a word;Dictionary|word/entry/expression/name:topic|Define <1>;What does <1> mean;Explain the word <1>;Look up <1>;Meaning of '<1>';What is a <1>;Look <1> up;Find the entry <1> in the dictionary;The definition of <1> please
alarm_clock ring_at set_clock morning_bell|Sets the alarm clock;Rings at a time|hours/h/hr:hour;minutes/m/min:minute|Ring at <1>:<2>;Set the clock to <1> hours <2> minutes;Wake me at <1> <2>;Alarm at hours <1>, minutes <2>;Let it ring at h <1> and min <2>;The clock should ring at <1> hours and <2> minutes
basket_put buy_item cart order_item shop_add|Puts goods into the basket;Order goods;Adds to the order|product/item/goods/what:item;amount/quantity/pieces/how_many:int|Put <2> <1> into the basket;Buy <2> <1>;Order <2> of <1>;I want <2> <1>;Add <1>, amount <2>;<2> times <1> please;Get me <2> <1>;Order product <1>, quantity <2>;Put <1> into the basket <2> times;Add <2> pieces of <1> to my order
reserve_hall get_room room_booking hall|Reserves a room;Books a hall for a group|hall/name/place:title;guests/persons/seats/group:int|Reserve <1> for <2> {people|guests|persons};Book <1> for <2>;I need <1> for <2> guests;Take the hall <1> for <2> persons;Reserve hall <1>, seats <2>;A booking for <2> in <1>
table_for reserve_table dinner restaurant_book|Reserve a table;Books a table in a restaurant|restaurant/where/venue:title;guests/seats/people:int;at/time/when:time|Reserve a table at <1> for <2> at <3>;Table for <2> at <1>, <3>;Book <1> for <2> people at <3>;<1>, <2> seats, <3>;I want to eat at <1> with <2> people at <3>
say_in_language to_language language_change interpret|Translates words;Puts a text into another language|phrase/text/sentence:quote;language/target/lang:lang|Say '<1>' in <2>;How do you say '<1>' in <2>;Translate '<1>' to <2>;'<1>' in <2>;Put '<1>' into <2>;What is '<1>' in <2>
add_numbers sum plus total_of|Adds two numbers|first/a/x:int;second/b/y:int|Add <1> and <2>;<1> plus <2>;Sum of <1> and <2>;What is <1> + <2>;Take <1> and add <2>
compute calculator evaluate math|Computes an expression;Calculator|expression/formula/term/input:formula|Compute <1>;What is <1>;Calculate <1>;How much is <1>;Work out <1>;Evaluate <1>;<1>
countdown timer_start egg_timer wait_for|Starts a timer;Counts down|seconds/minutes/duration/time:int|{Start|Set} a timer {for|of} <1> {seconds|minutes};Count down from <1>;Timer <1>;Wait <1> {seconds|minutes};<1> minutes from now;Tell me when <1> minutes are over
todo new_task task_add add_todo remind|Adds a task to the list;New task;Reminds of something|task/todo/item/what:quote|{Add|New} task: <1>;I must <1>, put it on my list;Remind me to <1>;Put '<1>' on my list;To do: <1>;Do not let me forget to <1>;Task <1>
list_files folder_list show_dir dir|Shows the files of a folder|folder/path/directory:path|{Show|List} the files in <1>;What is in <1>;What files are in <1>;Open the folder <1>;List <1>
open_file cat_file load_text show_file|Reads a file|file/filename/path:file|{Open|Read|Show} <1>;What does <1> say;What is in <1>;Print the file <1>;Load <1>;Show me the content of <1>
drop_file delete_file remove erase|Deletes a file|file/name/path:file|Delete <1>;Remove <1>;Erase the file <1>;Get rid of <1>;I no longer need <1>, delete it
rename_file rename move_file|Renames a file|old/from/source:file;new/to/target:file|Rename <1> to <2>;Call <1> now <2>;Move <1> to <2>;<1> should be called <2>;Change the name of <1> to <2>
run_query sql database db_query|Runs a query on a table;Asks the database|table/name:word;limit/rows/max:int|Show <2> rows of <1>;Get <2> rows from <1>;The first <2> of table <1>;Query <1>, limit <2>;Read <2> entries of <1>
find_user get_person user_info who_is|Finds a user;Looks a person up|user/name/login:name|Who is <1>;Find the user <1>;Show {me |}the {data|profile} of <1>;Look up <1>;Information about the user <1>;Get user <1>
add_contact save_contact phone_book|Saves a contact;New entry in the phone book|name/person:name;phone/number/tel:phone|Save <1> with the number <2>;New contact <1>, <2>;The number of <1> is <2>, save it;Add <1> (<2>) to my contacts
call_person dial ring_up phone_call|Calls somebody|who/name/person:name|Call <1>;Phone <1>;Ring <1>;Dial <1>;I want to speak to <1>;Give <1> a call
set_temperature heating thermostat warm_room|Sets the heating;Changes the temperature of a room|room/zone/where:room;degrees/temperature/celsius:int|Set <1> to <2> degrees;Heat <1> to <2>;Make it <2> degrees in <1>;<1>: <2> degrees;The <1> should have <2> degrees
power_switch switch device_power toggle|Switches a device|device/thing/name:item;on/state/active:onoff|{Turn|Switch} <2> the <1>;{Turn|Switch} the <1> <2>;The <1> should be <2>;<1> <2> please
paint_wall color_light set_color led|Sets the colour of a light|color/colour/tone:color|Make the light <1>;Set the colour to <1>;I want <1> light;Change it to <1>;<1> please;Color <1>
train_search find_train rail connections|Finds trains;Looks for a connection|from/start_station/board:place;to/goal/exit:place;day/date/when:day|Trains from <1> to <2> on <3>;I want to go from <1> to <2> on <3>;A train to <2> from <1>, <3>;Find a connection <1> to <2> for <3>;Is there a train from <1> to <2> on <3>
flight_search fly find_flight air|Finds flights|from_city/departure/out:place;to_city/arrival/into:place|Flights from <1> to <2>;Fly me from <1> to <2>;Find a flight <1> to <2>;I must fly from <1> to <2>;Is there a plane from <1> to <2>
hotel_search find_hotel stay rooms_in|Finds hotels|city/place/town:place;nights/days/duration:int|A hotel in <1> for <2> nights;Find a hotel in <1>, <2> nights;I stay <2> nights in <1>;Where can I sleep in <1> for <2> nights
recipe_for cook get_recipe dish_info|Finds a recipe|dish/food/name/meal:dish|How do I cook <1>;The recipe of <1>;I want to make <1>;What do I need for <1>;Find a recipe of <1>;Let us cook <1>
book_info find_book library book_search|Finds a book|title/book/name:title|Who wrote <1>;Find the book <1>;Do you have the book <1>;Tell me about the book <1>;Is <1> in the library
movie_info find_film cinema film|Shows data of a film|film/movie/title:title|When was <1> made;Tell me about the film <1>;Where does <1> run;Find the film <1>;Who plays in <1>
track_parcel parcel where_is delivery|Follows a parcel|code/number/parcel_id/tracking:code|Where is parcel <1>;Track <1>;Follow the parcel <1>;Has <1> arrived;The state of <1>;When does <1> arrive
close_ticket ticket_done resolve issue_close|Closes a ticket|id/ticket/number:int|Close ticket <1>;Ticket <1> is done;Mark <1> as done;Resolve number <1>;We finished <1>, close it
assign_ticket give_task delegate|Gives a ticket to a person|ticket/number/id:int;to/person/assignee:name|Give ticket <1> to <2>;Assign <1> to <2>;<2> should do ticket <1>;Let <2> handle number <1>
pay transfer send_money bank_transfer|Transfers money|to/receiver/payee:name;sum/amount/euros:int|Pay <1> <2> {euros|dollars};Send <2> to <1>;Transfer <2> to <1>;<1> gets <2> from me;Give <1> <2> dollars
account_balance balance money_left|Shows the money on an account|account/name/id:code|How much is on {the account |}<1>;Balance of <1>;How much money is left on <1>;Show the account <1>
create_user new_account register sign_up|Creates an account|login/username/name:name;mail/email/contact:email|Create {an account|a user} for <1> with <2>;Register <1>, <2>;New user <1>, mail <2>;Sign up <1> ({mail |}<2>)
reset_password new_password unlock|Resets a password|user/login/account:name|Reset the password of <1>;<1> forgot the password;Unlock <1>;New password for <1>
take_picture snap photo camera|Takes a photo|camera/device/where:room|Take a picture in <1>;Photo of <1>;Use the camera <1>;Snap <1>;Show me the camera <1>
water_plants water garden irrigate|Waters plants|bed/area/plant:item;liters/minutes/amount:int|Water the <1> with <2> liters;Give the <1> <2> liters;<2> liters for <1>
lock_door door gate lock|Locks or opens a door|door/which/gate:room;locked/closed/shut:lock|<2> the <1> door;<2> <1>;Please <2> the door of the <1>
vote poll_vote choose_option|Casts a vote|poll/question/topic:word;choice/option/answer:word|Vote <2> in {the poll |}<1>;In <1> I choose <2>;My vote in <1> is <2>;Choose <2> for <1>
rate review give_stars|Rates a thing|thing/item/product:item;stars/points/score:int|Give the <1> <2> stars;Rate <1> with <2>;<2> {points|stars} for <1>;The <1> gets <2>
subscribe newsletter join_list|Subscribes to a list|mail/email/address:email;list/topic/name:word|Subscribe <1> to <2>;Put <1> on the list <2>;Add <1> to <2>
post_message publish tweet share_post|Publishes a text|text/post/content:quote;channel/place/board:word|Post '<1>' in <2>;Publish '<1>' on <2>;Write '<1>' to the channel <2>
measure sensor read_sensor probe|Reads a sensor|sensor/id/probe:code|Read <1>;What does {sensor |}<1> say;Value of <1>;Measure with <1>;Check the sensor <1>
next_bus bus timetable departures|Next buses of a stop|stop/station/at:place|When does the next bus leave {at|from} <1>;Buses at <1>;Departures from <1>;Next bus in <1>
time_in world_clock clock_of local_time|Local time of a place|city/zone/place:place|What time is it in <1>;The time in <1>;How late is it in <1>;Is it night in <1>;<1> time please
population people_in city_facts|Facts about a place|place/city/name:place|How many people live in <1>;Tell me about <1>;Facts about <1>;How big is <1>;Population of <1>
make_qr qr code_image barcode|Makes a code|content/text/data:code|Make a code for <1>;QR of <1>;Turn <1> into a code;Encode <1>
random_number pick_number lucky between|Draws a number|low/min/from:int;high/max/to:int|A number {from|between} <1> {and|to} <2>;Pick a number, <1> to <2>;Draw between <1> and <2>
repeat_text echo print_times say_times|Repeats a word|word/text/what:word;times/count/n:int|Repeat <1> <2> times;Say <1> <2> times;Print <1>, <2> times;<2> times the word <1>
sort_list order_by sort_table|Sorts a table|table/list/name:word;column/key/by:word|Sort <1> by <2>;Order the table <1> by <2>;<1> sorted by <2>
deploy release ship rollout|Deploys a version|service/app/name:word;version/tag/build:version|Deploy <1> {in version|version|at} <2>;Release <2> of <1>;Ship <1> <2>;Roll out <1>, version <2>
restart restart_service reboot stop_service|Restarts a service|service/unit/name:word|Restart <1>;Please reboot <1>;<1> hangs, restart it;Start <1> again
scale replicas set_workers|Sets the number of workers|service/app/pool:word;workers/replicas/count:int|Scale <1> to <2>;Give <1> <2> workers;Run <2> copies of <1>;<1> needs <2> workers
"""


def place(r):
    return r.choice(CITIES) if r.random() < 0.45 else cap(pseudo(r, 1, 3)) if r.random() < 0.75 else r.choice(PLACES)


PLACES = "Porto Linz Graz Bonn Basel Malmo Lyon Turin Pisa Ghent Bergen Kiel Leeds Cork Bath Nice Jena Ulm Trier Aachen Dresden Leipzig Hamburg Munich Cologne Zurich Geneva Salzburg Bilbao Seville Valencia Naples Venice Verona Florence Milan Genoa Marseille Toulouse Bordeaux Lille Rotterdam Utrecht Antwerp Bruges Aarhus Uppsala Tampere Tromso Krakow Gdansk Brno Split Izmir Boston Denver Dallas Seattle Chicago Toronto Montreal Osaka Kyoto Mumbai Lagos Sydney Perth Austin Miami Houston Oxford York Dover Glasgow".split()
PLACES = [p for p in PLACES if p not in "Porto Linz Graz Bonn Pisa Rome".split()]  # those of the held-out set
THINGS = """meeting dinner party concert exam holiday training breakfast interview class picnic birthday report contract offer bill visit project trip lesson chess match yoga
wedding haircut choir practice tax return car service team talk summer plans new job moving day old piano budget parking garden rent""".split()
TOPICS = """rivers trains honey volcanoes dolphins castles winter sports robots old maps coral clouds bread gold rush moss lighthouses wolves opera glass bridges comets tea whales
pottery tunnels desert plants magnets owls steam engines islands maize fossils salt mines chess openings penguin spider erosion entropy enzyme tundra meteor lava orbit algae prism neuron
osmosis monsoon plankton quartz isotope delta fjord geyser""".split()
ACTIONS = """feed the cat;water the plants;pay the rent;buy {eggs|bread|apples|paper|tea};call {the bank|the doctor|grandma|<n>};wash the car;bring the keys;clean the {kitchen|garage};write to <n>;
read the report;take out the trash;book a flight;meet <n> at noon;pick up <n>;fix the {door|bike|lamp};see you {soon|tomorrow|at eight};I am late;happy birthday;good luck;be home by six;the {shop|bank} is closed;
lunch is ready;the {train|bus} is late;thank you for the {book|cake|help};do not forget the {milk|tickets|keys};return the {books|ladder};I like {tea|music|the sea};where are you;good morning;the meeting is off""".replace("\n", "").split(";")
UNITS_ = "miles kilometers meters feet inches centimeters pounds kilograms grams ounces liters gallons cups hours minutes seconds days weeks degrees acres yards knots bytes tons".split()
ROOMS = "kitchen bedroom garden cellar office hall garage attic bathroom balcony terrace studio nursery library corridor workshop porch lounge stairs pantry".split()
LANGS = "French German Spanish Italian Dutch Polish Latin Greek Turkish Danish Czech Arabic Hindi Korean Japanese Swedish Finnish".split()
ITEMS = NOUNS + FRUITS + VEGETABLES + "notebook pens socks towel mug kettle cable battery charger helmet tent stapler scissors fan heater radio printer toaster mixer oven speaker pump router".split()


def code(r):
    x = r.random()
    letters = lambda n: "".join(r.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(n))
    return letters(r.randint(2, 5)) if x < 0.5 else f"{letters(r.randint(1, 3))}{r.choice(['', '-'])}{r.randint(1, 9999)}" if x < 0.85 else letters(1) + pseudo(r, 1, 2)


def title(r):
    x = r.random()
    w = lambda: r.choice([r.choice(NOUNS), r.choice(ADJECTIVES), pseudo(r), r.choice(TOPICS)])
    return cap(w()) if x < 0.5 else f"{cap(w())} {cap(w())}" if x < 0.75 else f"The {cap(w())}" if x < 0.88 else r.choice(NAMES)


def quote(r):
    x = r.random()
    if x < 0.6:
        return spread(r, r.choice(ACTIONS)).replace("<n>", r.choice(NAMES))
    return " ".join(word(r) if r.random() < 0.6 else r.choice(NOUNS + VERBS_PAST + ADJECTIVES + ["the", "my", "and", "with", "at"]) for _ in range(r.randint(1, 5)))


VALUES = {
    "place": place,
    "code": code,
    "thing": lambda r: r.choice(THINGS) if r.random() < 0.6 else r.choice(NOUNS) if r.random() < 0.6 else pseudo(r),
    "day": lambda r: r.choice(DAYS + ["tomorrow", "today"]) if r.random() < 0.8 else f"{r.randint(1, 28)} {r.choice(MONTHS)}",
    "name": lambda r: r.choice(NAMES) if r.random() < 0.6 else cap(pseudo(r)),
    "quote": quote,
    "int": lambda r: r.choice([r.randint(1, 12), r.randint(1, 100), r.randint(1, 100), r.randint(100, 9999)]),
    "unit": lambda r: r.choice(UNITS_),
    "currency": lambda r: r.choice("EUR USD GBP CHF JPY SEK NOK DKK PLN CZK INR CNY AUD CAD BRL MXN KRW TRY".split()),
    "room": lambda r: r.choice(ROOMS) if r.random() < 0.75 else pseudo(r),
    "topic": lambda r: r.choice(TOPICS) if r.random() < 0.5 else r.choice(NOUNS + ANIMALS) if r.random() < 0.6 else pseudo(r, 2, 4) if r.random() < 0.7 else f"{r.choice(ADJECTIVES)} {r.choice(NOUNS)}",
    "title": title,
    "hour": lambda r: r.randint(0, 23),
    "minute": lambda r: r.choice([0, 5, 10, 15, 20, 30, 40, 45, 50, r.randint(1, 59)]),
    "item": lambda r: r.choice(ITEMS) if r.random() < 0.85 else pseudo(r),
    "time": lambda r: f"{r.randint(0, 23)}:{r.choice(['00', '15', '30', '45'])}",
    "lang": lambda r: r.choice(LANGS),
    "formula": lambda r: f"{r.randint(1, 99)} {r.choice('+-*/')} {r.randint(1, 99)}" + (f" {r.choice('+-*')} {r.randint(1, 20)}" if r.random() < 0.3 else ""),
    "path": lambda r: r.choice(["/", "~/", "./", "", "/home/"]) + r.choice([word(r), r.choice(NOUNS)]) + r.choice(["", "", "/" + r.choice(NOUNS)]),
    "file": lambda r: f"{r.choice([word(r), r.choice(NOUNS), pseudo(r)])}.{r.choice('txt md json csv log py pdf png'.split())}",
    "word": lambda r: r.choice([word(r), pseudo(r), r.choice(NOUNS)]),
    "phone": lambda r: "".join(r.choice("0123456789") for _ in range(r.randint(4, 8))),
    "onoff": lambda r: r.random() < 0.5,
    "lock": lambda r: r.random() < 0.5,
    "color": lambda r: r.choice(forms.COLOR),
    "dish": lambda r: r.choice(forms.DISHES + FRUITS + ["noodles", "pie", "omelette", "goulash"]),
    "email": lambda r: f"{r.choice([r.choice(NAMES).lower(), pseudo(r)])}@{r.choice(['example.com', 'mail.org', pseudo(r) + '.net'])}",
    "version": lambda r: f"{r.choice(['', 'v'])}{r.randint(0, 9)}.{r.randint(0, 20)}" + (f".{r.randint(0, 9)}" if r.random() < 0.5 else ""),
}


def pieces(r):
    """A string of parts of words and digits, as names of products and places may look: it can only be copied."""
    parts = []
    for _ in range(r.choice([1, 2, 2, 3])):
        w = r.choice([r.choice(NOUNS), r.choice(TOPICS), r.choice(NAMES).lower(), r.choice(PLACES).lower(), pseudo(r), r.choice(ADJECTIVES)])
        i = r.randrange(max(1, len(w) - 3))
        parts.append(w[i : i + r.randint(2, 6)])
    w = "".join(parts)
    x = r.random()
    return w if x < 0.3 else cap(w) if x < 0.8 else w.upper() if x < 0.9 else cap(w) + r.choice(["", " ", "-"]) + str(r.randint(1, 99))


VALUES["pieces"] = pieces
VALUES["float"] = lambda r: r.choice([round(r.uniform(0.1, 99), 1), round(r.uniform(1, 500), 2), r.randint(1, 200)])
VALUES["date"] = forms.date
VALUES["site"] = lambda r: f"{r.choice(['', 'www.', 'https://', 'https://www.'])}{r.choice([word(r), pseudo(r), pieces(r).lower().replace(' ', '')])}.{r.choice('com org net de io example fr'.split())}" + (f"/{r.choice(NOUNS)}" if r.random() < 0.2 else "")
VALUES["address"] = lambda r: f"{forms.street(r)}, {r.choice(PLACES)}" if r.random() < 0.35 else forms.street(r) if r.random() < 0.7 else f"{cap(pieces(r))} {r.choice(['Road', 'Lane', 'Square'])} {r.randint(1, 200)}"
STRANGE = {"place": 0.15, "topic": 0.15, "word": 0.3, "title": 0.2, "name": 0.12, "item": 0.1}  # how often a value is one that can only be copied


def value(r, kind):
    """A value of a kind: a scalar, a list or an object."""
    m = re.match(r"(one|list|object)\((.*)\)", kind)
    if not m:
        return pieces(r) if r.random() < STRANGE.get(kind, 0) else VALUES[kind](r)
    if m[1] == "one":
        return r.choice(m[2].split(","))
    if m[1] == "list":
        return [value(r, m[2]) for _ in range(r.choice([2, 2, 3, 3, 4]))]
    keys = m[2].split(",")
    return {k: forms.MAKERS[k](r) for k in (keys if r.random() < 0.6 else r.sample(keys, 2))}


def typed(r, v, kind):
    """The schema of a value."""
    if isinstance(v, list):
        return {"type": "array", "items": typed(r, v[0], "")}
    if isinstance(v, dict):
        return {"type": "object", "properties": {k: typed(r, x, "") for k, x in v.items()}}
    if kind.startswith("one("):
        return {"type": "string", "enum": kind[4:-1].split(",")}
    if isinstance(v, float) or (kind == "float") or (type(v) is int and r.random() < 0.25):
        return {"type": "number"}
    return {"type": TYPES[type(v)]}


TYPES = {bool: "boolean", int: "integer", str: "string"}
KINDS = [row.split("|", 2) for row in (KINDS.strip() + "\n" + trades.ROWS).split("\n")]
HELD = set("forecast stock_quote add_appointment send_mail convert_currency save_note dim_lamp find_articles roll_dice play_song distance lookup wake_up add_to_cart book_room".split())


def parts(row):
    names, descriptions, rest = row
    params, questions = rest.split("|", 1)
    params = [(p.split(":")[0].split("/"), p.split(":")[1]) for p in params.split(";")]
    return names.split(), descriptions.split(";"), params, questions.split(";")


KINDS = [parts(row) for row in KINDS]


def split_name(r, name):
    """The name in one of the usual styles."""
    x, w = r.random(), name.split("_")
    return name if x < 0.6 else w[0] + "".join(map(cap, w[1:])) if x < 0.75 else "-".join(w) if x < 0.8 else ".".join(w) if x < 0.84 else "".join(map(cap, w)) if x < 0.9 else f"{r.choice(['do', 'run', 'my', 'api', 'tool', 'x'])}_{name}"


def shown(value, kind, r):
    if kind == "onoff":
        return "on" if value else "off"
    if kind == "lock":
        return r.choice(["lock", "close", "shut"]) if value else r.choice(["open", "unlock"])
    if isinstance(value, list):
        return ", ".join(map(str, value[:-1])) + r.choice([" and ", " and ", ", "]) + str(value[-1])
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    return str(value)


def natural_call(r):
    """One tool with a question in natural words: (tool, question, arguments, response, answer, must)."""
    names, descriptions, params, questions = r.choice(KINDS)
    x = r.random()
    name = split_name(r, r.choice(names)) if x < 0.75 else pseudo(r, 1, 3) if x < 0.82 else f"{r.choice(names).split('_')[0]}_{pseudo(r, 1, 2)}" if x < 0.91 else f"{pseudo(r, 1, 2)}_{r.choice(names).split('_')[-1]}"
    if name in HELD:
        return natural_call(r)
    keys, props, args = [], {}, {}
    described = r.random() < 0.45
    for options, kind in params:
        k = options[0] if r.random() < 0.35 else r.choice(options)
        if r.random() < 0.08:
            k = pseudo(r, 1, 2)
        while k in args:
            k += "_2"
        v = value(r, kind)
        keys.append(k)
        args[k] = v
        props[k] = typed(r, v, kind)
        if described or r.random() < 0.1:
            props[k]["description"] = spread(r, r.choice([f"The {options[0].replace('_', ' ')}", f"{cap(r.choice(options).replace('_', ' '))}", f"{cap(an(options[-1].replace('_', ' ')))}{{ to use| of it|}}"]))
    form = r.choice(questions)
    q = spread(r, form)
    if r.random() < 0.12:  # by the keys
        q = spread(r, r.choice(["{Use|Call|Please use|Run} <f>: <k>", "{<f>|<f> please}, <k>", "<k>, {please|use <f>}", "<d>: <k>"])).replace("<f>", name.replace("_", " ")).replace("<d>", descriptions[0])
        q = q.replace("<k>", r.choice([", ", " and ", "; "]).join(f"{k.replace('_', ' ')}{r.choice([' ', ': ', ' is '])}{shown(args[k], kind, r)}" for k, (_, kind) in zip(keys, params)))
        if any(kind == "lock" for _, kind in params):
            return natural_call(r)
    for i, (k, (_, kind)) in enumerate(zip(keys, params)):
        q = q.replace(f"<{i + 1}>", shown(args[k], kind, r))
    q = cap(q) if r.random() < 0.75 and not form.startswith("<") else q
    if q[-1:].isalnum() and r.random() < 0.6:
        q += "?" if re.match(r"(?i)(what|who|where|when|how|is|do|does|will|has) ", q) else "."
    if r.random() < 0.2:
        q = r.choice(["Please ", "Can you help: ", "Hi! ", "Hello, ", "Now: ", "Quickly: ", "Next: ", "OK. "]) + q
    resp, a = r.choice([("ok", "Done."), ("done", "Done."), (str(n := r.randint(2, 999)), f"The answer is {n}."), (w := r.choice(NOUNS), f"The answer is {w}."), ('{"result": "' + w + '"}', f"The result is {w}.")])
    required = list(props)
    while r.random() < 0.12:  # what may be left out, and is
        k = r.choice(["limit", "lang", "format", "verbose", "page", "unit", "note", "mode", "timeout", "user_id"])
        if k not in props:
            props[k] = {"type": r.choice(["string", "integer", "boolean"]), **({"description": "Optional"} if r.random() < 0.5 else {})}
    item = {"type": "function", "function": {"name": name, "description": r.choice(descriptions), "parameters": {"type": "object", "properties": props, "required": required}}}
    return item, q, args, resp, a, [a.rstrip(".").split(" ")[-1]]
