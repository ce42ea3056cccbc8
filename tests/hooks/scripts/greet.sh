#!/bin/bash
# Words for the person.
echo '{"systemMessage": "Remember to tag the release", "suppressOutput": true}'
