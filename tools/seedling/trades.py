"""More kinds of tools, for toolbox.py and in its form: names; descriptions; parameters; questions. Here also choices (one of), lists, objects and dates."""

ROWS = """
find_doctor clinic doctors_near medical_search|Finds doctors;Looks for a clinic|specialty/field/kind:one(dentist,eye doctor,surgeon,vet,skin doctor);city/town/place:place|I need a <1> in <2>;Find a <1> in <2>;Is there a <1> in <2>;Which <1> is open in <2>
air_quality pollen uv_index pollution|Tells how clean the air is;Air report|city/place/town:place|How is the air in <1>;Is the air clean in <1>;Can I go running in <1>;{pollen|smog|dust} in <1>?;Is it healthy outside in <1> today
weather_week forecast_days seven_days ahead|Weather of the next days|place/town:place;days/ahead/count:int|How will the weather in <1> be for the next <2> days;<2> days of weather for <1>;Weather in <1>, {the next |}<2> days;Will it rain in <1> within <2> days
rain_check umbrella will_it_rain|Says whether it will rain|location/city:place;day/when:day|Will it rain in <1> <2>;Do I need an umbrella in <1> <2>;Rain in <1> <2>?;Will <2> be dry in <1>;Is it going to rain in <1> <2>
sunrise sun_times daylight|When the sun rises and sets|city/place:place;event/which:one(sunrise,sunset)|When is <2> in <1>;{Tell me the|The} <2> in <1>;What time is <2> in <1>;<2> <1>
stock_history share_chart price_history|Prices of a share over time|symbol/ticker:code;period/range/span:one(day,week,month,year)|Show <1> over the last <2>;How did <1> do this <2>;Chart of <1> for one <2>;<1>, last <2>
buy_shares trade order_stock|Buys or sells shares|action/side/what:one(buy,sell);symbol/ticker/stock:code;count/shares/number:int|<1> <3> shares of <2>;I want to <1> <3> <2>;Please <1> <3> of <2>;<1> <3> <2> shares
crypto coin_price token_value|Price of a coin|coin/symbol/currency:code;in/quote/money:currency|What is <1> worth in <2>;<1> in <2>;Price of <1> in <2>;How many <2> for one <1>
split_bill tip share_cost bill|Splits a bill|amount/total/bill:float;people/persons/guests:int|Split <1> among <2> people;<1> for <2> persons, how much each;We are <2> and pay <1>, what does each pay;Divide a bill of <1> by <2>
loan interest_rate mortgage|Computes a loan|sum/amount/principal:int;rate/percent/interest:float;years/term/duration:int|What do I pay for a loan of <1> at <2> percent over <3> years;Loan: <1>, <2> percent, <3> years;Rate for <1> euros, <2> %, <3> years
percent percentage part_of|Computes a percentage|percent/rate/share:int;of/number/whole:int|What is <1> percent of <2>;<1> % of <2>;How much is <1> percent of <2>;Take <1> percent of <2>
bmi body_index health_index|Computes the body mass index|weight/kg/mass:int;height/cm/size:int|I weigh <1> kg and am <2> cm tall, what is my BMI;BMI for <1> kilos and <2> cm;Body index: weight <1>, height <2>
age_of days_until count_days date_diff|Counts the days until a date|date/until/target/to:date|How many days until <1>;Days until <1>;How long is it until <1>;Count the days to <1>;When I wait for <1>, how many days is it
weekday_of day_of_date which_day|Weekday of a date|date/when/on:date|Which day is <1>;What weekday was <1>;On which day falls <1>;<1> is a what day
add_days date_plus shift_date|Adds days to a date|date/start/from:date;days/plus/add:int|Which date is <2> days after <1>;Add <2> days to <1>;<1> plus <2> days;What comes <2> days after <1>
calendar_list agenda my_day events_on|Lists what is in the calendar|date/day/on:date|What do I have on <1>;My plans for <1>;Am I free on <1>;Show the calendar of <1>;Is there something on <1>
move_event reschedule shift_event postpone|Moves an event to another day|event/title/what:thing;to/new_day/day:day|Move the <1> to <2>;Postpone the <1> until <2>;The <1> should be on <2> instead;Can you put the <1> on <2>
cancel_event drop_event uninvite delete_event|Cancels an event|event/title/what:thing|Cancel the <1>;The <1> will not happen;Delete the <1> from my calendar;Please call off the <1>;Take the <1> out
invite add_guest guest_list|Invites a person to an event|person/guest/who:name;event/to/what:thing|Invite <1> to the <2>;<1> should come to the <2>;Add <1> to the <2>;Ask <1> to the <2>
group_mail mail_all send_many|Sends a mail to several people|recipients/to/people:list(name);subject/topic/title:thing|Mail <1> about the <2>;Write to <1>: <2>;Send <1> a mail with the subject <2>;<1> should get a mail about <2>
search_mail find_mail inbox_search|Searches the mails|from/sender/who:name|Do I have mail from <1>;Find the mails of <1>;What did <1> write to me;Show mails sent by <1>;Any message from <1>
reply_mail answer_mail respond|Answers a mail|id/mail/number:int;text/answer/body:quote|Answer mail <1> with '<2>';Reply '<2>' to message <1>;Write back to number <1>: <2>
shopping_list add_items groceries list_add|Puts things on the shopping list|items/things/goods/products:list(item)|We need <1>;Put <1> on my shopping list;I have to buy <1>;Add <1>;<1> for the shopping list;Please note <1> for the market
compare_prices cheaper best_offer|Compares prices of things|products/items/things:list(item)|What is cheaper, <1>;Compare the prices of <1>;Which costs less: <1>
average mean_of middle|Mean of numbers|numbers/values/list:list(int)|What is the average of <1>;Mean of <1>;Average <1>;Take the mean of <1>
largest max_of biggest_number highest|Largest of numbers|numbers/values/list:list(int)|Which is the largest of <1>;Biggest number: <1>;Maximum of <1>;Find the largest: <1>
sort_numbers sorted order_numbers arrange|Sorts numbers|numbers/values/list:list(int);order/direction:one(ascending,descending)|Sort <1> <2>;Put <1> in <2> order;Order <1>, <2>
tag_photo label_image add_tags|Adds tags to a photo|photo/file/image:file;tags/labels/words:list(word)|Tag <1> with <2>;Add the tags <2> to <1>;Label <1>: <2>
zip_files pack archive make_zip|Packs files|files/names/paths:list(file);into/archive/target:file|Pack <1> into <2>;Zip <1> as <2>;Put <1> together in <2>
copy_file duplicate backup_file|Copies a file|from/source/file:file;to/target/folder:path|Copy <1> to <2>;Make a copy of <1> in <2>;Back up <1> to <2>;Duplicate <1> into <2>
search_text grep find_in find_lines|Looks for a word in files|word/pattern/text/needle:word;folder/where/path:path|Where is the word <1> in <2>;Look for <1> in <2>;Which files in <2> contain <1>;Find <1> under <2>
disk_space free_space storage df|Free space of a disk|disk/drive/path:path|How much space is left on <1>;Is <1> full;Free space of <1>;How full is <1>
ping_host is_online check_site reachable|Checks whether a site answers|host/site/url/address:site|Is <1> up;Ping <1>;Does <1> answer;Check whether <1> is online;Can you reach <1>
open_page browse fetch_url visit get_page|Opens a web page|url/page/site/link:site|Open <1>;Go to <1>;What is on <1>;Read the page <1>;Fetch <1>;Visit <1> for me
shorten short_link link_make|Makes a short link|url/link/long:site|Shorten <1>;A short link for <1>;Make <1> shorter
restart_service reboot kill_service service_do|Starts or stops a service|service/name/unit:word;action/command/do:one(start,stop,restart)|<2> {the service |}<1>;Please <2> <1>;<1> must <2>;Can you <2> <1>
scale resize_cluster set_replicas|Sets how many copies of a service run|service/app/name:word;replicas/copies/count:int|Run <2> copies of <1>;Scale <1> to <2>;<1> needs <2> replicas;Set <1> to <2> instances
show_logs logs tail_log read_logs|Shows the last lines of a log|service/app/of:word;lines/count/n:int|Show the last <2> lines of <1>;Logs of <1>, <2> lines;What did <1> log in the last <2> lines
make_issue report_bug bug open_ticket|Opens a ticket|title/summary/subject:quote;priority/severity:one(low,medium,high,urgent)|Open a ticket '<1>' with <2> priority;New bug: <1>, <2>;Report '<1>' as <2>;Ticket with {the |}title '<1>' and priority <2>
merge_branch git_merge merge|Merges a branch|branch/from/source:word;into/target/to:one(main,develop,release)|Merge <1> into <2>;Bring <1> into <2>;<1> should go to <2>
color_mix mix_paint blend|Mixes two colours|first/a/one:color;second/b/two:color|What do <1> and <2> make;Mix <1> with <2>;<1> and <2> mixed;Blend <1> and <2>
shades blinds curtains awning|Opens or closes the blinds|room/where/window:room;position/state/to:one(up,down,half)|{Put|Move} the blinds in the <1> <2>;Blinds <2> in the <1>;<1> blinds <2>;Let the blinds of the <1> <2>
vacuum robot_clean clean_room hoover|Lets the robot clean a room|room/area/where:room;mode/power:one(quiet,normal,strong)|Vacuum the <1>, <2>;Clean the <1> in <2> mode;The robot should clean the <1>, mode <2>
washing laundry wash_start machine|Starts the washing machine|program/kind/what:one(cotton,wool,silk,mix);degrees/temperature/heat:int|Wash <1> at <2> degrees;Start <1> with <2> degrees;<2> degrees, program <1>;Laundry: <1>, <2>
oven preheat bake_at oven_on|Heats the oven|degrees/temperature/heat:int;minutes/time/for:int|Heat the oven to <1> for <2> minutes;Oven <1> degrees, <2> minutes;Bake at <1> for <2> minutes;Preheat to <1>, <2> min
coffee brew make_coffee barista|Makes coffee|kind/drink/type:one(espresso,latte,cappuccino,mocha,americano);sugar/spoons/sweet:int|A <1> with <2> sugars;Make me a <1>, <2> sugar;I would like a <1> with <2> spoons of sugar;<1>, <2> sugars please
order_food takeaway deliver menu_order|Orders food|dish/meal/food:dish;to/address/where:address|Bring <1> to <2>;Order <1> to <2>;I want <1> delivered to <2>;<1> for <2> please
ship_parcel send_parcel post_package|Sends a parcel|to/address/target:address;weight/kg/kilos:float|Send a parcel of <2> kg to <1>;A package for <1>, <2> kilos;Ship <2> kg to <1>
save_address new_address set_home|Saves an address of somebody|person/name/who:name;address/home/at:address|<1> lives at <2>, save it;Save the address of <1>: <2>;New address of <1>: <2>;Remember that <1> is at <2>
ride taxi cab order_ride|Orders a taxi|from/pickup/start:address;to/dropoff/goal:address|A taxi from <1> to <2>;Take me from <1> to <2>;I need a ride, <1> to <2>;Cab from <1>, to <2>
parking park find_parking|Finds parking|near/where/place:place;hours/duration/time:int|Parking near <1> for <2> hours;Where can I park in <1> for <2> hours;I need a parking place in <1>, <2> hours
charge_car ev_station charging plug|Finds a charging station|city/near/place:place;power/kw/speed:int|Where can I charge in <1> with <2> kW;A charger in <1>, at least <2> kW;Charging station <1> <2> kW
traffic jam road_state congestion|Traffic on a road|road/street/highway:code|How is the traffic on <1>;Is there a jam on <1>;Traffic <1>;Is <1> free
flight_status plane_state is_late arrival|State of a flight|flight/number/code:code|Is flight <1> late;When does <1> land;Status of flight <1>;Has <1> landed
seat_reserve pick_seat seat|Reserves a seat|train/flight/trip:code;seat/place/number:code|Reserve seat <2> in <1>;I want seat <2> on <1>;Take place <2> in {train|flight} <1>
visit_museum opening_hours hours_of is_open|Opening hours of a place|name/place/shop/museum:title|When does <1> open;Is <1> open now;Opening hours of <1>;How long is <1> open today
events_in concerts whats_on things_to_do|Events in a city|city/place/town:place;kind/type/what:one(concert,theater,market,sport,cinema)|Which <2> is there in <1>;<2> in <1>;Is there a <2> in <1> tonight;I look for a <2> in <1>
lyrics song_text words_of|Words of a song|song/title/track:title|What are the words of <1>;Lyrics of <1>;Show the text of the song <1>;How does <1> go
playlist new_playlist make_list mixtape|Makes a playlist|name/title:title;songs/tracks:list(title)|Make a playlist <1> with <2>;Playlist <1>: <2>;Put <2> into the playlist <1>
volume set_volume loudness sound|Sets the volume|level/percent/value:int|Volume <1>;Make it <1> percent loud;Set the sound to <1>;Louder, to <1>;Turn the volume to <1>
next_track player media control|Controls the player|action/command/button:one(play,pause,next,previous,stop)|<1>;<1> please;Press <1>;Please <1> the music;The player should <1>
channel tv switch_channel watch|Switches the television|channel/number/program:int|Channel <1>;Switch to <1>;Put the TV on <1>;I want to watch <1>;Turn to channel <1>
dictionary_de vocabulary word_in|A word in another language|word/term:word;language/to/lang:lang|What is <1> in <2>;The <2> word for <1>;<1> in <2>;How do I say <1> in <2>;Translate <1> into <2>
spell_check correct spelling check_word|Checks the spelling of a word|word/text/term:word|Is <1> spelled right;How do you spell <1>;Check the spelling of <1>;Is it written <1>
rhyme rhymes rhyme_with|Finds rhymes|word/for/with:word|What rhymes with <1>;A rhyme for <1>;Rhymes of <1>;Find words that rhyme with <1>
synonym thesaurus similar other_word|Finds words of like meaning|word/term/for:word|Another word for <1>;Synonyms of <1>;What else can I say for <1>;A word like <1>
summarize_text tldr shorten_text digest|Sums up a text|text/content/body:quote;sentences/length/lines:int|Sum up in <2> sentences: <1>;Shorten '<1>' to <2> lines;<2> sentences about this: <1>
generate_password password make_key secret|Makes a password|length/chars/size:int;strength/kind/level:one(simple,strong,extreme)|A <2> password with <1> characters;Make a password, <1> long, <2>;I need a <2> key of <1> letters
encode base64 hash checksum|Encodes a text|text/data/value:word;method/algorithm/with:one(base64,md5,sha256,hex)|<2> of <1>;Encode <1> with <2>;What is the <2> of <1>;Turn <1> into <2>
plot draw_chart graph chart|Draws a chart|values/data/numbers:list(int);kind/type/style:one(bar,line,pie)|Draw a <2> chart of <1>;Plot <1> as <2>;A <2> chart with <1>;Show <1> in a <2> chart
db_insert add_row insert_record new_row|Adds a record to a table|table/into/name:word;record/row/values:object(name,city,age)|Insert into <1>: <2>;Add a row to <1> with <2>;New record in <1>: <2>;Put <2> into the table <1>
update_profile set_profile change_user|Changes the data of a user|user/login/who:name;changes/fields/data:object(email,city,job)|Change the profile of <1>: <2>;Set <2> for <1>;<1> now has <2>;Update <1> with <2>
create_product add_product product_new|Adds a product to the shop|product/item/data:object(name,price,color)|New product: <1>;Add a product with <1>;Create an item, <1>;Put this into the shop: <1>
book_trip plan_trip travel trip|Plans a trip|from/start:place;to/goal/destination:place;date/day/on:date;people/travelers/persons:int|A trip from <1> to <2> on <3> for <4> people;Plan <1> to <2>, <3>, <4> persons;We are <4> and want from <1> to <2> on <3>
rent_car car_hire hire|Rents a car|place/city/where:place;from/start/begin:date;to/end/until:date|Rent a car in <1> from <2> to <3>;I need a car in <1>, <2> until <3>;Car hire <1>, <2> to <3>
log_workout sport_log training exercise|Notes sport|sport/kind/activity:one(running,swimming,cycling,yoga,tennis);minutes/duration/time:int|I did <2> minutes of <1>;Note <1>, <2> minutes;Log <2> min <1>;Today <1> for <2> minutes
log_meal calories food_log ate|Notes a meal|dish/meal/food:dish;calories/kcal/energy:int|I ate <1>, <2> calories;Note <1> with <2> kcal;Log a meal: <1>, <2>
take_pill medicine reminder_pill dose|Reminds of a medicine|medicine/name/drug:pieces;time/at/when:time|Remind me to take <1> at <2>;<1> at <2>, remind me;I must take <1> at <2>;Pill <1>, <2>
habit goal set_goal target|Sets a goal|goal/what/aim:quote;times/per_week/count:int|I want to <1> <2> times a week;Goal: <1>, <2> times;Set the goal to <1> <2> times
feed_pet pet_food feeder dispense|Feeds a pet|pet/animal/who:name;grams/amount/portion:int|Feed <1> <2> grams;Give <1> <2> g of food;<1> gets <2> grams
grade set_grade mark_test score_student|Notes a grade|student/pupil/name:name;grade/mark/points:int;subject/class/course:one(math,history,music,biology,English)|<1> gets <2> in <3>;Give <1> {a|the} <2> in <3>;Note a <2> for <1>, <3>;Grade of <1> in <3> is <2>
enroll join_course sign_in_class course_add|Puts a student into a course|student/person/name:name;course/class/lesson:topic|Put <1> into the course {on|about} <2>;Enroll <1> in <2>;<1> wants to learn about <2>;Sign <1> up for <2>
quiz make_quiz test_me questions_on|Makes a quiz|topic/subject/about:topic;count/questions/number:int|Make a quiz about <1> with <2> questions;<2> questions on <1>;Test me on <1>, <2> questions;Quiz: <1>, <2>
image_make paint_image draw_picture imagine|Makes an image|prompt/description/what:quote;size/format:one(small,medium,large)|Draw a <2> picture: <1>;Paint '<1>', <2>;A <2> image of '<1>'
robot_move move drive step|Moves the robot|direction/where/way:one(left,right,forward,back);steps/distance/cm:int|Move <2> {steps |}<1>;Go <1> <2>;<2> steps <1> please;Drive <1> by <2>;Robot, <1> <2>
set_point goto position move_to|Moves to a point|point/position/target:object(x,y)|Go to <1>;Move to the point <1>;Drive to <1>;Position <1>
access_grant permit allow share_with|Gives a person a right|user/person/who:name;right/role/access:one(read,write,admin);file/on/resource:file|Give <1> <2> access to <3>;<1> may <2> <3>;Allow <1> to <2> {the file |}<3>;Share <3> with <1> as <2>
translate_file localize file_to_language|Translates a file|file/document/path:file;languages/to/into:list(lang)|Translate <1> to <2>;<1> in <2>;Put <1> into <2>;I need <1> in <2>
donate give_to charity support|Gives money to a cause|cause/for/whom:one(animals,children,forests,refugees);amount/sum/money:float|Give <2> for <1>;Donate <2> to {the |}<1>;I want to support <1> with <2>
""".strip()
