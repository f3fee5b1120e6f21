import streamlit as st

st.title("Streamlit")
st.write("Edit app.py.")
